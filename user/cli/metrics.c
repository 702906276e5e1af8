/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/cli.h"

#include "base/cleanup.h"
#include "cli/options.h"
#include "show/metrics.h"

const char metrics_help[] =
	"Prints once what Prometheus reads from \"socksteer run --metrics\": every figure of\n"
	"\"socksteer status\" in the text exposition format 0.0.4, for a collector of text files\n"
	"or for a look.\n";

const char metrics_more[] = "Exit codes: 0 done; 2 usage; 3 a right is missing.\n"
			    "\n"
			    "Examples:\n"
			    "  socksteer metrics\n"
			    "  socksteer metrics | grep listener_held\n";

int command_metrics(int argc, char **argv, struct failure *failure)
{
	const struct command *command = command_find("metrics");
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
	err = status_read(NULL, &status, failure);
	return err ? err : metrics_print(&status, stdout);
}
