/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/cli.h"

#include "cli/options.h"
#include "steering/names.h"

#include <inttypes.h>

const char attach_help[] =
	"Hands each new connection of the group to the listener with the least load. The\n"
	"servers are not touched and need not know. Connections that are open already stay\n"
	"where they are, and count. Either the whole group is steered or nothing changes.\n"
	"Steering goes on after this command has ended; \"socksteer detach\" ends it.\n"
	"\n"
	"A GROUP that fits several is refused with the list of them; --pid and --netns tell\n"
	"them apart.\n";

const char attach_option_help[] =
	"      --policy NAME   how to choose, from the list below (default least-loaded)\n"
	"      --force         replace a program that somebody else has attached\n";

const char attach_more[] =
	"Exit codes: 0 steered, or steered already; 1 failed, and the group is as it was;\n"
	"2 usage; 3 a right or something of the kernel is missing; 4 nothing to steer: no\n"
	"such group, one listener only, no SO_REUSEPORT, or MPTCP.\n"
	"\n"
	"Examples:\n"
	"  socksteer attach :8080\n"
	"  socksteer attach 127.0.0.1:80 --policy least-conn --netns /run/netns/blue\n";

void attach_report_print(const struct attach_report *report, enum policy policy, FILE *out,
			 FILE *notes)
{
	if (report->already && report->nr_added) {
		fprintf(out, "%s is steered already; %zu listener%s that joined since %s added\n",
			report->name, report->nr_added, report->nr_added == 1 ? "" : "s",
			report->nr_added == 1 ? "was" : "were");
		return;
	}
	if (report->already) {
		fprintf(out, "%s is steered already; nothing changed\n", report->name);
		return;
	}
	fprintf(out,
		"%s: steering %zu listener%s of %zu worker%s by %s; %" PRIu64
		" connection%s already open\n",
		report->name, report->nr_listeners, report->nr_listeners == 1 ? "" : "s",
		report->nr_workers, report->nr_workers == 1 ? "" : "s", policy_name(policy),
		report->nr_seeded, report->nr_seeded == 1 ? " was" : "s were");
	if (report->signals_missing[0])
		fprintf(notes, "socksteer: steering without what this kernel does not show: %s\n",
			report->signals_missing);
}

int command_attach(int argc, char **argv, struct failure *failure)
{
	const struct command *command = command_find("attach");
	struct attach_options attach_options;
	struct attach_report report;
	struct options options;
	int err;

	err = options_parse(command, argc, argv, &options, failure);
	if (err)
		return err;
	if (options.help) {
		help_print_command(command, stdout);
		return 0;
	}
	attach_options = (struct attach_options){
		.policy = options.policy,
		.force = options.force,
	};
	err = group_attach(&options.group, &attach_options, &report, failure);
	if (err)
		return err;
	attach_report_print(&report, options.policy, stdout, stderr);
	if (report.already && options.has_policy)
		fprintf(stderr,
			"socksteer: its policy stays as it is; \"socksteer policy %s %s\" switches it\n",
			report.name, policy_name(options.policy));
	return 0;
}
