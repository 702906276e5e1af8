/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/cli.h"

#include "base/cleanup.h"
#include "cli/options.h"
#include "kernel/features.h"
#include "kernel/iterate.h"
#include "kernel/pins.h"
#include "show/audit.h"

#include <errno.h>

const char audit_help[] =
	"Counts the connections of steered groups anew, socket by socket, and compares them with\n"
	"what the counters say that each worker holds. Connections go on meanwhile: where they\n"
	"come and go faster than they can be counted, the difference is given as a range, and\n"
	"only what several counts agree upon is called a difference. A worker has one load over\n"
	"all its listeners, so all groups are counted, and mended, whichever is shown.\n"
	"\n"
	"  HELD        what the counters say of the listener\n"
	"  SOCKETS     its connections in the kernel, those in the queue included\n"
	"  DIFFERENCE  counter minus sockets\n"
	"  WORKER'S    the same over all listeners of the worker\n";

const char audit_option_help[] =
	"      --repair        charge each connection to who holds it, and mend the counters;\n"
	"                      a connection whose descriptor is on its way to another process,\n"
	"                      or is one of io_uring, is in no file table and taken for closed\n"
	"      --json          print JSON\n";

const char audit_more[] =
	"Exit codes: 0 nothing differs, or it was mended; 1 something differs, or failed;\n"
	"2 usage; 3 a right is missing; 4 the GROUP is not steered.\n"
	"\n"
	"Examples:\n"
	"  socksteer audit\n"
	"  socksteer audit :8080 --repair\n"
	"  socksteer audit --json | jq .clean\n";

static void cleanup_inspector(struct inspector **inspector)
{
	inspector_free(*inspector);
}

/* Repairing changes the kernel's maps and nothing else, which looking is enough for. */
static int run_audit(const struct options *options, struct audit_report *report,
		     struct failure *failure)
{
	CLEANUP(cleanup_inspector) struct inspector *inspector = NULL;
	int err;

	err = rights_check(PURPOSE_LOOK, failure);
	if (!err)
		err = pins_check(failure);
	if (!err)
		err = inspector_new(&inspector, failure);
	return err ? err :
		     audit_run(inspector, options->has_group ? &options->group : NULL,
			       options->repair ? REPAIR_ALL : REPAIR_NONE, report, failure);
}

int command_audit(int argc, char **argv, struct failure *failure)
{
	const struct command *command = command_find("audit");
	CLEANUP(audit_done) struct audit_report report = {};
	struct options options;
	int err;

	err = options_parse(command, argc, argv, &options, failure);
	if (err)
		return err;
	if (options.help) {
		help_print_command(command, stdout);
		return 0;
	}
	err = run_audit(&options, &report, failure);
	if (!err)
		err = options.json ? audit_print_json(&report, stdout) :
				     audit_print_table(&report, stdout);
	if (err || report.repaired || audit_is_clean(&report))
		return err;
	return failure_set(failure, EXIT_FAILED, EPROTO,
			   "counters and sockets differ: \"socksteer audit --repair\" mends it");
}
