/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which worker of a group the user means: by a slot, by its process, or by both of what status shows
 * of it. Pure.
 *
 * A worker may serve several slots, and a process may have several workers (event loops), so
 * whatever is named has to lead to exactly one row of the table of workers.
 */
#ifndef SOCKSTEER_STEERING_WORKER_SPEC_H
#define SOCKSTEER_STEERING_WORKER_SPEC_H

#include "base/failure.h"
#include "steering/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "nginx:4211 (slots 1, 3, 5 and 2 more)"; a name of 16 bytes is 64 when all are escaped. */
#define WORKER_TEXT_SIZE 160

struct worker_spec {
	bool may_be_slot;
	bool may_be_pid;
	uint32_t number; /* slot or pid */
	const char *command; /* with a pid: what the process calls itself, NULL for any; borrowed */
	size_t command_length;
	const char *text; /* as the user wrote it, for messages; borrowed */
};

/* "N", "slot:N", "pid:N" or "COMMAND:PID". -EINVAL. */
int worker_spec_parse(const char *text, struct worker_spec *ret_spec);

/*
 * The listener of that worker, the first if it has several; borrowed from group. EXIT_NOTHING with the
 * list when there is no such worker; EXIT_USAGE with the ways to write it when several match.
 */
int worker_spec_find(const struct worker_spec *spec, const struct status_group *group,
		     const struct status_listener **ret_listener, struct failure *failure);

/* What the worker of this listener is called in messages, with its slots; names are escaped. */
void worker_text(const struct status_group *group, const struct status_listener *listener,
		 char ret_text[WORKER_TEXT_SIZE]);

#endif
