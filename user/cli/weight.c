/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/cli.h"

#include "base/text.h"
#include "cli/options.h"
#include "cli/worker.h"

#include <errno.h>
#include <string.h>

const char weight_help[] =
	"Sets what a worker can take beside the others: one of weight 3 is given three times\n"
	"the connections of one of weight 1, by every policy but hash. WEIGHT is a whole\n"
	"number from 1 to 1000; a worker begins with 1.\n"
	"\n"
	"It is the worker's in all of its groups, and stays until the worker ends.\n";

const char weight_more[] =
	"Exit codes: 0 done; 1 failed; 2 usage, or the WORKER is not unique; 3 a right is\n"
	"missing; 4 the group is not steered, or has no such worker.\n"
	"\n"
	"Examples:\n"
	"  socksteer weight :8080 2 3\n"
	"  socksteer weight :8080 nginx:4211 10\n";

static int parse_weight(const char *text, uint32_t *ret_weight, struct failure *failure)
{
	char quoted[64];
	uint64_t weight;

	if (text_to_u64(text, 1, MAX_WEIGHT, &weight)) {
		text_escape(text, strlen(text), quoted, sizeof(quoted));
		return failure_set(failure, EXIT_USAGE, EINVAL,
				   "\"%s\" is not a weight; a weight is a whole number from 1 to "
				   "%u",
				   quoted, MAX_WEIGHT);
	}
	*ret_weight = (uint32_t)weight;
	return 0;
}

int command_weight(int argc, char **argv, struct failure *failure)
{
	const struct command *command = command_find("weight");
	struct worker_change change = {};
	struct worker_report report;
	struct options options;
	int err;

	err = options_parse(command, argc, argv, &options, failure);
	if (err)
		return err;
	if (options.help) {
		help_print_command(command, stdout);
		return 0;
	}
	err = parse_weight(options.arguments[2], &change.weight, failure);
	if (!err)
		err = worker_change_named(&options, &change, &report, failure);
	if (err)
		return err;
	printf("%s: %s has weight %u from now on, it had %u", report.group, report.worker,
	       report.after.weight, report.before.weight);
	worker_print_others(&report, "also for");
	return 0;
}
