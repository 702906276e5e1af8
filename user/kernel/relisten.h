/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Making a listener stop and listen again: shutdown(), then listen(). In between, the kernel migrates
 * what waits in its queue to the other members of its reuseport group. A process that holds the listener
 * notices nothing unless it calls accept() at that moment, which fails with EINVAL; descriptors, epoll
 * registrations, the bound address and handshakes that are not finished stay with the socket.
 *
 * What must never happen is a listener that stays shut. So a child does both, which goes on if its
 * parent is killed, and the parent listens itself if the child did not come that far. Should both be
 * killed, relisten_finish() mends it later.
 */
#ifndef SOCKSTEER_KERNEL_RELISTEN_H
#define SOCKSTEER_KERNEL_RELISTEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* At least as many as the options that shutdown() of a listener resets. */
#define MAX_KEPT_OPTIONS 8

/* How the listener is to listen, whatever becomes of it meanwhile. */
struct relisten {
	uint32_t backlog;
	struct sockaddr_storage address;
	socklen_t address_bytes;
	/* What the options were, in the order of the table in relisten.c. */
	bool is_kept[MAX_KEPT_OPTIONS];
	int kept[MAX_KEPT_OPTIONS];
};

/* Reads it off the listener. -ENOTCONN if it does not listen. */
int relisten_prepare(int fd, struct relisten *ret_relisten);

/*
 * Does it. 0 if it was shut and listens again. Else -errno, and listener_listens() tells whether it could
 * not be made to listen, or listens as before, perhaps without having been shut. Blocks all signals for
 * its duration, which is a fraction of a millisecond, and some seconds at most if listen() fails.
 */
int relisten_run(int fd, const struct relisten *relisten);

/* Makes it listen if it does not. Tried once: who calls it again later is more patient than this. */
int relisten_finish(int fd, const struct relisten *relisten);

bool listener_listens(int fd);

/* Connections in its queue, and how many may be: 0 and 0 if it does not listen. */
void listener_read_counts(int fd, uint32_t *ret_queued, uint32_t *ret_backlog);

/*
 * Wakes whoever waits for the listener; changes nothing. From 5.14 to the fix of April 2026 the kernel
 * migrates connections without that, and they would wait for the next one to arrive.
 */
void listener_wake(int fd);

#endif
