/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * foreign: a real server that knows nothing of socksteer, with a folder of its own for what it
 * reads and writes. One at a time; it ends, and its folder goes, with the test.
 *
 * Its answers must end in "worker 0 pid 4211" and a line feed, which is what clients.h reads.
 */
#ifndef SUPPORT_FOREIGN_H
#define SUPPORT_FOREIGN_H

#include "support/footprint.h"
#include "support/steered.h"

#include <sys/types.h>

/*
 * Where each of them listens, in a network of its own. A daemon on the machine may keep a port in every
 * network, and is most likely told of a usual one: so this is an unusual one.
 */
#define FOREIGN_ADDRESS "127.0.0.1"
#define FOREIGN_PORT "18472"
#define FOREIGN_GROUP "127.0.0.1:18472"

struct foreign {
	pid_t pid; /* of the process that was started, 0 for none */
	char folder[64];
	struct endpoint endpoint;
};

/* For .init and .fini of a suite: a sandbox, the folder, and no server yet. */
void foreign_enter(void);
void foreign_leave(void);

/* The one of this test. */
const struct foreign *foreign_get(void);

/* Writes a file into the folder, which is also where the server is started. */
void foreign_write(const char *name, const char *text);

/* Starts it. Skips the test when there is no such program on this machine. */
#define foreign_start(...) foreign_start_list((const char *const[]){ __VA_ARGS__, NULL })
void foreign_start_list(const char *const *command);

/* Waits until so many listeners, workers and processes are there. */
void foreign_await(size_t nr_listeners, size_t nr_workers, size_t nr_processes);

/* The status of its group; ended with status_done(). */
void foreign_status(struct status *ret_status);

#endif
