/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/cli.h"

#include "cli/options.h"
#include "cli/worker.h"

const char resume_help[] =
	"Ends what \"socksteer drain\" began: the worker gets its share of new connections\n"
	"again, at once, in all of its groups.\n";

const char resume_more[] =
	"Exit codes: 0 done, also if it was not draining; 1 failed; 2 usage, or the WORKER is\n"
	"not unique; 3 a right is missing; 4 the group is not steered, or has no such worker.\n"
	"\n"
	"Examples:\n"
	"  socksteer resume :8080 2\n"
	"  socksteer resume :8080 nginx:4211\n";

int command_resume(int argc, char **argv, struct failure *failure)
{
	const struct worker_change change = { .clear_flags = WORKER_DRAINING };
	const struct command *command = command_find("resume");
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
	err = worker_change_named(&options, &change, &report, failure);
	if (err)
		return err;
	if (!(report.before.flags & WORKER_DRAINING)) {
		printf("%s: %s was not draining; nothing changed\n", report.group, report.worker);
		return 0;
	}
	printf("%s: %s gets new connections again", report.group, report.worker);
	worker_print_others(&report, "also from");
	return 0;
}
