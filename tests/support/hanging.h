/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hanging: a steered group of three workers of which the first hangs, stopped by SIGSTOP, with
 * connections in its queue whose clients have sent a request.
 */
#ifndef SUPPORT_HANGING_H
#define SUPPORT_HANGING_H

#include "support/clients.h"
#include "support/scene.h"
#include "support/steered.h"

#define NR_HANGING_WORKERS 3

struct hanging {
	struct scene scene;
	struct steered steered;
	struct clients held; /* one of each worker, from before */
	struct clients queued; /* in the queue of the one that hangs */
	char pid[NUMBER_BYTES]; /* of the one that hangs */
	uint32_t slot;
	uint64_t cookie;
};

void hanging_start(struct hanging *hanging, size_t nr_queued);
void hanging_done(struct hanging *hanging);

/* Adds this many to its queue. */
void hanging_queue(struct hanging *hanging, size_t nr);

/* Ends the hanging. */
void hanging_continue(const struct hanging *hanging);

/* Expects that everything that was queued is answered, by the other workers. The list is empty then. */
void expect_answered_by_others(struct hanging *hanging, const char *what);

/* Expects that the listener that hung has the slot and the row that it had. */
void expect_same_member(const struct hanging *hanging, const struct member *before,
			const char *what);
void hanging_member(const struct hanging *hanging, struct member *ret_member);

#endif
