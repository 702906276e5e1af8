/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Why something failed, in words for the user. The function that knows the reason fills it in and
 * returns -errno; those above hand it on; main prints it, once. Nothing below main prints or exits.
 */
#ifndef SOCKSTEER_BASE_FAILURE_H
#define SOCKSTEER_BASE_FAILURE_H

/* Exit codes of the program; README lists them. */
enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_MISSING = 3, /* the kernel lacks something, or a right is missing */
	EXIT_NOTHING = 4, /* nothing to steer */
	EXIT_UNREAD = 141, /* whoever read the output is gone: what a shell makes of SIGPIPE */
};

struct failure {
	enum exit_code code; /* EXIT_DONE as long as nothing failed */
	char message[2048]; /* "" with EXIT_UNREAD: nobody has to be told */
};

/*
 * Records a failure and returns -err, so that "return failure_set(...)" is all it takes. The message
 * is one sentence (more lines may list choices), without program name and without a newline at its
 * end: what was attempted, on what, why it failed, and what to do.
 */
__attribute__((format(printf, 4, 5))) int failure_set(struct failure *failure, enum exit_code code,
						      int err, const char *format, ...);

/* Adds a line to the message of a failure, for lists. Silently cut when the message is full. */
__attribute__((format(printf, 2, 3))) void failure_add(struct failure *failure, const char *format,
						       ...);

#endif
