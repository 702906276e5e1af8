/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/cli.h"

#include "base/cleanup.h"
#include "cli/options.h"
#include "cli/status.h"
#include "show/status.h"

const char status_help[] =
	"Shows what the kernel counts for each listener of a steered group, or of all of them.\n"
	"\n"
	"  SLOT       place of the listener in the group\n"
	"  PID        the worker's process, and its COMMAND\n"
	"  STATE      idle, busy, stuck (it does not accept what waits in its queue, and for\n"
	"             how long), unattended (nobody waits for the listener), draining, gone\n"
	"             (it closed) or unknown; and how far a listener that joined, or is well\n"
	"             again, has come in its slow start\n"
	"  WEIGHT     of the worker; only shown where one has another than 1\n"
	"  HELD       connections of this listener that are not closed yet\n"
	"  WORKER     the same over all listeners of its worker, which is what is compared\n"
	"  HALF-OPEN  handshakes begun and not finished\n"
	"  QUEUED     connections that wait to be accepted / how many may wait\n"
	"  STEERED    handshakes that were sent here, and their SHARE of the group's\n"
	"\n"
	"The last line counts how the choices ended.\n";

const char status_option_help[] =
	"      --json          print JSON, with more counters\n"
	"      --watch[=SECONDS]\n"
	"                      look again every second, or as often as said (such as 5 or\n"
	"                      500ms), until Ctrl-C; with --json one document on each line\n";

const char status_more[] =
	"Exit codes: 0 done; 2 usage; 3 a right is missing; 4 the GROUP is not steered.\n"
	"\n"
	"Examples:\n"
	"  socksteer status\n"
	"  socksteer status :8080 --watch=2\n"
	"  socksteer status --json | jq '.groups[].listeners[] | {pid, held}'\n";

int command_status(int argc, char **argv, struct failure *failure)
{
	const struct command *command = command_find("status");
	CLEANUP(status_done) struct status status = {};
	struct options options;
	int err;

	err = options_parse(command, argc, argv, &options, failure);
	if (err)
		return err;
	if (options.help) {
		help_print_command(command, stdout);
		return 0;
	}
	if (options.watch)
		return status_watch(&options, failure);
	err = status_read(options.has_group ? &options.group : NULL, &status, failure);
	if (err)
		return err;
	return options.json ? status_print_json(&status, stdout) :
			      status_print_table(&status, stdout);
}
