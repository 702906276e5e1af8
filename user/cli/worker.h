/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What drain, resume, weight and rescue have in common: how they read their WORKER, and what they say.
 */
#ifndef SOCKSTEER_CLI_WORKER_H
#define SOCKSTEER_CLI_WORKER_H

#include "base/failure.h"
#include "cli/options.h"
#include "steering/operate.h"

/* The worker that the second argument names. -EINVAL with *failure filled. */
int worker_parse_named(const struct options *options, struct worker_spec *ret_worker,
		       struct failure *failure);

/* Changes the worker that the second argument names. */
int worker_change_named(const struct options *options, const struct worker_change *change,
			struct worker_report *ret_report, struct failure *failure);

/* Ends the line: the other groups in which the same happens, after these words, and a line feed. */
void worker_print_others(const struct worker_report *report, const char *words);

#endif
