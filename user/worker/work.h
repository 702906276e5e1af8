/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * work: the time that a request costs its worker. Runs inside the event loop on purpose: a
 * worker that is at work serves nobody else, and that is what load balancing is about.
 */
#ifndef WORKER_WORK_H
#define WORKER_WORK_H

#include "http.h"

/* Lets this thread sleep to the nanosecond; by default the kernel may add 50 us to every sleep. */
void work_init(void);

void work_do(const struct http_request *request);

#endif
