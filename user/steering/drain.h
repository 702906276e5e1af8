/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a draining worker still has, for who waits until that is nothing. Only looks; how often and
 * how long is the caller's business.
 *
 * Most looks cost one row of counters: the sockets themselves are asked only when the worker holds
 * nothing, because handshakes and connections that were queued before the attach show only there.
 */
#ifndef SOCKSTEER_STEERING_DRAIN_H
#define SOCKSTEER_STEERING_DRAIN_H

#include "base/failure.h"
#include "steering/operate.h"
#include <stdint.h>

/* Opaque. One worker that is being watched. */
struct drain;

enum drain_stage {
	DRAIN_HOLDS, /* it has something left */
	DRAIN_EMPTY,
	DRAIN_ENDED, /* its process has ended, and its connections with it */
	DRAIN_LOST, /* its row was freed, so nobody counts for it any more */
	DRAIN_RESUMED, /* it does not drain any more */
};

struct drain_state {
	enum drain_stage stage;
	uint64_t held; /* over all its listeners, as the other two */
	uint64_t half_open; /* zero as long as held is not */
	uint64_t queued;
};

/* Watches the worker that was changed. The caller frees *ret_drain. */
int drain_new(const struct worker_report *report, struct drain **ret_drain,
	      struct failure *failure);
void drain_free(struct drain **drain);

/* A descriptor that becomes readable when the worker's process ends, or -1. Borrowed. */
int drain_end_fd(const struct drain *drain);

/* 0 or -errno with *failure filled. */
int drain_look(struct drain *drain, struct drain_state *ret_state, struct failure *failure);

#endif
