/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/run.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "daemon/daemon.h"

const char run_help[] =
	"Stays in the foreground and keeps each named group steered: attaches it when it\n"
	"appears, gives new listeners their slot within milliseconds, attaches again when\n"
	"the group ends and comes back, and says what it did on standard error. A GROUP\n"
	"that fits several groups keeps all of them. It never holds a listener open, and\n"
	"steering goes on without it.\n";

const char run_option_help[] =
	"      --detach-on-exit\n"
	"                      end steering of these groups when the command ends\n";

const char run_more[] = "Signals: SIGTERM and SIGINT end it, and leave the groups steered unless\n"
			"--detach-on-exit was given; SIGHUP looks at everything again.\n"
			"\n"
			"Examples:\n"
			"  socksteer run :80 :443\n"
			"  socksteer run 127.0.0.1:8080 --policy least-conn --detach-on-exit\n";

int command_run(int argc, char **argv, struct failure *failure)
{
	const struct command *command = command_find("run");
	struct group_spec specs[MAX_RUN_GROUPS];
	struct options options;
	size_t i;
	int err;

	err = options_parse(command, argc, argv, &options, failure);
	if (err)
		return err;
	if (options.help) {
		help_print_command(command, stdout);
		return 0;
	}
	for (i = 0; i < options.nr_arguments && !err; i++)
		err = options_parse_group(options.arguments[i], &options, &specs[i], failure);
	if (err)
		return err;
	return daemon_run(
		&(struct daemon_options){
			.specs = specs,
			.nr_specs = options.nr_arguments,
			.policy = options.policy,
			.detach_on_exit = options.detach_on_exit,
		},
		failure);
}
