/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * supervised: a run of socksteer, and the children that it forks, each of which stops before every system
 * call by which it changes something outside itself, so that a test can end either of them there.
 *
 * Where traced uses ptrace, this uses seccomp's notifications (Linux 5.9), which tell parent and child
 * apart and need no attaching. The calls are: pidfd_getfd, clone, shutdown, bind, listen, pidfd_open, and
 * bpf where it writes to a map.
 */
#ifndef SUPPORT_SUPERVISED_H
#define SUPPORT_SUPERVISED_H

#include "support/program.h"

#include <stdbool.h>
#include <stdint.h>

struct supervised {
	struct program program;
	int notifications; /* owned */
	bool has_ended; /* the program; a child of it may live on */
	int wait_status; /* once it has ended */
	/* The call before which somebody stopped. */
	uint64_t id;
	pid_t pid; /* the program, or a child of it */
	int number;
};

void supervised_start_list(struct supervised *ret_supervised, const char *const *arguments);
#define supervised_start(ret_supervised, ...)                                                      \
	supervised_start_list(ret_supervised, (const char *const[]){ __VA_ARGS__, NULL })

/* Waits until one of them stops. False if all have ended instead. */
bool supervised_next(struct supervised *supervised);

/* Lets the call happen. */
void supervised_let(const struct supervised *supervised);

/* True if it was a child that stopped. */
bool supervised_is_child(const struct supervised *supervised);

/* "listen", for messages. */
const char *supervised_call_name(const struct supervised *supervised);

/* Lets everything happen until all have ended. */
void supervised_run_on(struct supervised *supervised);

/* After the end of all. */
void supervised_wait(struct supervised *supervised, struct said *ret_said);

#endif
