/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * traced: a run of socksteer that stops at each system call by which it changes something outside
 * itself, so that a test can do anything at exactly that moment, or end the run there.
 *
 * The calls are picked by a seccomp filter, so that all others run at full speed. They are: flock,
 * pidfd_getfd, setsockopt, mkdir, unlink, rmdir, and bpf where it loads, pins, attaches, or writes
 * to a map. Works on any architecture that has PTRACE_GET_SYSCALL_INFO (Linux 5.3).
 */
#ifndef SUPPORT_TRACED_H
#define SUPPORT_TRACED_H

#include "support/program.h"

#include <stdbool.h>
#include <stdint.h>

struct traced {
	struct program program;
	bool has_ended;
	int wait_status; /* once it has ended */
	/* The call at which it stopped: its number, the first arguments, and, once done, its result. */
	uint64_t number;
	uint64_t arguments[3];
	int64_t result;
};

/* Starts it; it stops before its first own instruction. */
void traced_start_list(struct traced *ret_traced, const char *const *arguments);
#define traced_start(ret_traced, ...)                                                              \
	traced_start_list(ret_traced, (const char *const[]){ __VA_ARGS__, NULL })

/* Runs on and stops before the next call of the list above. False if it ends instead. */
bool traced_next(struct traced *traced);

/* Lets the call at which it stopped happen, and stops after it. */
void traced_do_call(struct traced *traced);

/* Runs on to the next call that holds, and stops before it. False if it ends instead. */
bool traced_next_that(struct traced *traced, bool (*holds)(const struct traced *traced));

/* Calls to wait for. */
bool call_is_flock(const struct traced *traced);
bool call_copies_listener(const struct traced *traced);
bool call_pins(const struct traced *traced);
bool call_attaches_program(const struct traced *traced); /* to the group */

/* "bpf(OBJ_PIN)", for messages. */
const char *call_name(const struct traced *traced);

/* Ends it with SIGKILL where it stands, and waits for that. */
void traced_kill(struct traced *traced);

/* Runs it to its end. */
void traced_run_on(struct traced *traced, struct said *ret_said);

#endif
