/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * nginx: Debian's, as the foreign server of a test, with a listener for each worker. Its answers name the
 * worker, so that clients.h reads them; connections are kept for as long as a test takes.
 */
#ifndef SUPPORT_NGINX_H
#define SUPPORT_NGINX_H

#include <stddef.h>

/* Starts it and waits until all workers serve. */
void nginx_start(size_t nr_workers);

/* Tells it to go on with another number of workers. Returns at once. */
void nginx_reload(size_t nr_workers);

#endif
