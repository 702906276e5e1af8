/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a command that acts on pinned groups needs while it does: the lock of the pins, what listens
 * at this moment, and the groups that are pinned.
 */
#ifndef SOCKSTEER_STEERING_SESSION_H
#define SOCKSTEER_STEERING_SESSION_H

#include "base/failure.h"
#include "kernel/features.h"
#include "steering/inventory.h"
#include "steering/pinned.h"

/* Owned, all of it; ended with session_done(), however far it came. */
struct session {
	int lock;
	struct inventory inventory;
	struct pinned pinned;
};

#define SESSION_NONE                                                                               \
	(struct session)                                                                           \
	{                                                                                          \
		.lock = -1                                                                         \
	}

/* 0 or -errno with *failure filled. Waits for the lock for a few seconds at most. */
int session_begin(struct session *session, enum purpose purpose, struct failure *failure);
void session_done(struct session *session);

#endif
