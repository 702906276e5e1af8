/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * plain_group: raw listeners on one address, for what epoll-worker does not do: full queues, mixed
 * groups, listeners that nobody watches, workers that never accept.
 */
#ifndef SUPPORT_PLAIN_GROUP_H
#define SUPPORT_PLAIN_GROUP_H

#include "worker/listener.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Listeners of one group. More than any test opens. */
#define PLAIN_GROUP_MAX 512

/* Longer than any queue of a test that is not about queues. */
#define PLAIN_BACKLOG 128

struct plain_group {
	struct endpoint endpoint; /* of all of them */
	size_t nr;
	int listeners[PLAIN_GROUP_MAX]; /* owned; -1 when it was closed */
	int epolls[PLAIN_GROUP_MAX]; /* owned; the set that watches it, or -1 */
};

/* An empty group. port "0" becomes a free one with the first listener. */
void plain_group_init(struct plain_group *group, const char *address, const char *port);
void plain_group_done(struct plain_group *group);

/* Opens one more listener, with SO_REUSEPORT. */
void plain_group_add(struct plain_group *group, int backlog);
/* One of this kind. */
void plain_group_add_kind(struct plain_group *group, struct listener_kind kind, int backlog);

/* Opens nr, each watched by an epoll set of its own, so that each is a worker. */
void plain_group_add_watched(struct plain_group *group, size_t nr, int backlog);

/* Puts a listener into an epoll set of its own. Nobody waits on it: the worker counts as busy. */
void plain_group_watch(struct plain_group *group, size_t index);

/* Closes a listener and its epoll set. */
void plain_group_close(struct plain_group *group, size_t index);

/* Takes one queued connection; the caller owns the descriptor, -1 when nothing is queued. */
int plain_group_accept(const struct plain_group *group, size_t index);

uint64_t socket_cookie(int fd);

/*
 * A process that opens one listener of its own, watches it, and never accepts: a worker that hangs.
 * Returns when it listens. It ends with the test, or with SIGKILL.
 */
pid_t hanging_worker_start(const struct endpoint *endpoint, int backlog);
void hanging_worker_end(pid_t pid);

#endif
