/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/cli.h"

#include "cli/drain_wait.h"
#include "cli/options.h"
#include "cli/worker.h"

#include <inttypes.h>

const char drain_help[] =
	"Gives a worker no new connections from now on, in all of its groups, as long as\n"
	"other workers of the group can take them; it finishes those that it holds. Nobody\n"
	"is refused: when all workers drain, they share new connections as before. To end it\n"
	"there is \"socksteer resume\"; a worker that is started anew does not drain.\n";

const char drain_option_help[] =
	"      --wait [TIMEOUT]\n"
	"                      stay until the worker holds nothing, or for TIMEOUT at most,\n"
	"                      such as 30s, and show how many it still holds; Ctrl-C ends\n"
	"                      the waiting, and the worker drains on\n";

const char drain_more[] =
	"Exit codes: 0 it drains, and with --wait holds nothing any more, or has ended;\n"
	"1 failed, or --wait ended before that; 2 usage, or the WORKER is not unique;\n"
	"3 a right is missing; 4 the group is not steered, or has no such worker.\n"
	"\n"
	"Examples:\n"
	"  socksteer drain :8080 2\n"
	"  socksteer drain :8080 nginx:4211 --wait 30s && kill -QUIT 4211\n";

static void print_report(const struct worker_report *report)
{
	bool already = report->before.flags & WORKER_DRAINING;

	printf("%s: %s %s; it holds %" PRIu64 " connection%s", report->group, report->worker,
	       already ? "drains already" : "gets no new connections from now on", report->held,
	       report->held == 1 ? "" : "s");
	worker_print_others(report, "also drains");
	/* In this order also for those who read both in one file. */
	fflush(stdout);
	if (report->not_avoided)
		fprintf(stderr,
			"socksteer: the kernel's hash serves %s at the moment, so the worker gets "
			"connections all the same: \"socksteer status %s\" says why\n",
			report->group, report->group);
	else if (report->all_drain)
		fprintf(stderr,
			"socksteer: every worker of %s drains now, so they share new connections\n",
			report->group);
}

int command_drain(int argc, char **argv, struct failure *failure)
{
	const struct worker_change change = { .set_flags = WORKER_DRAINING };
	const struct command *command = command_find("drain");
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
	/* First, so that Ctrl-C is never without its answer. */
	if (options.wait)
		drain_wait_prepare();
	err = worker_change_named(&options, &change, &report, failure);
	if (err)
		return err;
	print_report(&report);
	return options.wait ? drain_wait(&report, options.timeout_ns, failure) : 0;
}
