/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * crew: all workers of one server. Starts them as processes or threads, says when every one of
 * them listens, notices when one ends, and takes all of them along when it ends itself.
 */
#ifndef WORKER_CREW_H
#define WORKER_CREW_H

#include "listener.h"
#include "options.h"

#include <signal.h>
#include <sys/types.h>

struct crew {
	const struct worker_options *options;
	struct endpoint endpoint;
	int shared_fd; /* The one listener of --shared and --no-reuseport, or -1. */
	int reservation_fd; /* Holds the port until the workers listen, or -1. */
	int report_fd; /* Where the parent reads who listens, until all do. */
	int ready_fd; /* Where workers report that they listen, or -1. */
	unsigned int nr_alive;
	pid_t pids[WORKERS_MAX]; /* By worker number; 0 when it has ended. */
	sigset_t signals; /* Blocked in the parent, which waits for them. */
};

/* Decides the address and the port. Undone by crew_done(), which also ends every worker. */
int crew_init(struct crew *crew, const struct worker_options *options);
void crew_done(struct crew *crew);

/* Returns 0 when every worker listens. -ECHILD: one of them failed, and has said why. */
int crew_start(struct crew *crew);

/* Returns 0 when a signal asked for the end, -ECHILD when no worker is left. */
int crew_wait(struct crew *crew);

#endif
