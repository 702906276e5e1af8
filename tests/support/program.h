/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * program: the real build/socksteer as a child process, as a person runs it: what it says, and the
 * code that it ends with. It ends with the test, however that ends.
 */
#ifndef SUPPORT_PROGRAM_H
#define SUPPORT_PROGRAM_H

#include "base/failure.h"

#include <sys/types.h>

/* Begins what program_wait() or program_forget() ends. */
struct program {
	pid_t pid;
	int output; /* owned; memory that takes its standard output */
	int error; /* owned; the same for standard error */
};

/*
 * What is different about a run. prepare is called in the child, last before the program begins,
 * where nothing may be asserted: 0 or -errno, which ends the child with PROGRAM_UNPREPARED.
 */
struct program_setup {
	int (*prepare)(void *argument);
	void *argument;
};

/* No exit code of the program. */
#define PROGRAM_UNPREPARED 125

/* What a run said. Given back by said_done(). */
struct said {
	int code; /* exit code; or 128 and the number of the signal that ended it */
	char *output; /* owned, never NULL */
	char *error; /* owned, never NULL */
};

void said_done(struct said *said);

/*
 * Starts it with these arguments, a list of strings that ends with NULL. setup may be NULL. The
 * calling thread is its parent, and for ptrace the only one that may trace it.
 */
void program_start(struct program *ret_program, const struct program_setup *setup,
		   const char *const *arguments);
/* What its standard error has by now. The caller frees it. */
char *program_error_so_far(const struct program *program);
/* Waits for its end. */
void program_wait(struct program *program, struct said *ret_said);
/* For a program that was waited for already: only what it said is of interest. */
void program_collect(struct program *program, int wait_status, struct said *ret_said);
/* Gives back everything but the process. */
void program_forget(struct program *program);

/* From beginning to end. */
void program_run_list(struct said *ret_said, const struct program_setup *setup,
		      const char *const *arguments);
#define program_run(ret_said, ...)                                                                 \
	program_run_list(ret_said, NULL, (const char *const[]){ __VA_ARGS__, NULL })
#define program_run_in(ret_said, setup, ...)                                                       \
	program_run_list(ret_said, setup, (const char *const[]){ __VA_ARGS__, NULL })

/* The same, and expects that it succeeds. */
#define program_succeeds(...) program_succeeds_list((const char *const[]){ __VA_ARGS__, NULL })
void program_succeeds_list(const char *const *arguments);

/* Expects that all went well and that standard output has these words in it. */
void expect_done(const struct said *said, const char *what, const char *words);

/*
 * Expects this code, nothing on standard output, and one sentence on standard error that begins
 * with the program's name and has these words in it.
 */
void expect_refused(const struct said *said, const char *what, enum exit_code code,
		    const char *words);

#endif
