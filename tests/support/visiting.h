/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * visiting: load in the background. Threads that open short connections, one after another each,
 * until they are told to stop.
 */
#ifndef SUPPORT_VISITING_H
#define SUPPORT_VISITING_H

#include "support/clients.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#define VISITORS 4

struct visitor {
	struct visiting *visiting; /* borrowed */
	pthread_t thread;
	atomic_size_t nr_visits; /* that ended well */
	int err; /* that ended it early; valid after visiting_stop() */
};

struct visiting {
	const struct endpoint *to; /* borrowed */
	atomic_bool stop;
	struct visitor visitors[VISITORS];
};

/* Both in place: the threads know where it is. */
void visiting_start(struct visiting *visiting, const struct endpoint *to);

/* Ends it, and expects that every visit went well. */
void visiting_stop(struct visiting *visiting);

/* Waits until every visitor has ended so many more visits. The first of them may be older. */
void visiting_await(struct visiting *visiting, size_t nr_visits);

#endif
