/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/run.h"
#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "daemon/daemon.h"
#include "daemon/orders.h"
#include "daemon/privileges.h"
#include "show/metrics.h"
#include "steering/names.h"

const char run_help[] =
	"Stays in the foreground and keeps groups steered: attaches each when it appears,\n"
	"gives new listeners their slot within milliseconds, attaches again when the group\n"
	"ends and comes back, and says what it did on standard error. It never holds a\n"
	"listener open, and steering goes on without it.\n"
	"\n"
	"Which groups: each GROUP, and if it fits several all of them; those of the file; and\n"
	"with --all every group of the machine that can be steered, but none that has a\n"
	"program of somebody else. Settings given here win over those of the file.\n";

const char run_option_help[] =
	"      --config FILE   groups and settings from a file; SIGHUP reads it again\n"
	"      --check         only check the file and the rest of the command line, and print\n"
	"                      the settings of each group; needs no rights\n"
	"      --all           every group that can be steered, and that fits\n"
	"      --match KEY=GLOB\n"
	"                      all of these: address=GLOB, such as '127.0.0.1:80*'; command=GLOB,\n"
	"                      the name of a worker; user=NAME|UID, whose listeners they are\n"
	"      --policy NAME   how to choose, from the list below, in all of these groups\n"
	"      --detach-on-exit\n"
	"                      end steering of these groups when the command ends\n"
	"      --metrics 127.0.0.1:PORT\n"
	"                      serve /metrics and /healthz over HTTP there, or on [::1]:PORT;\n"
	"                      port 0 takes one that is free, and the log says which\n";

const char run_more[] =
	"Signals: SIGTERM and SIGINT end it, and leave the groups steered unless\n"
	"--detach-on-exit was given. SIGHUP reads the file and looks at everything again:\n"
	"groups that are new in the file are steered, those no longer in it are not, and\n"
	"changed settings act without a gap. A bad file changes nothing.\n"
	"\n"
	"Exit codes: 0 ended by a signal, or nothing to object to; 1 failed; 2 usage, or a bad\n"
	"file; 3 a right or something of the kernel is missing.\n"
	"\n"
	"Examples:\n"
	"  socksteer run :80 :443\n"
	"  socksteer run 127.0.0.1:8080 --policy least-conn --detach-on-exit\n"
	"  socksteer run --config /etc/socksteer.conf --check\n"
	"  socksteer run --all --match command=nginx --match 'address=*:443'\n";

static int check_options(const struct command *command, const struct options *options,
			 struct failure *failure)
{
	if (options->patterns.nr && !options->all)
		return options_refuse_usage(command, "--match needs --all", failure);
	if (!options->nr_arguments && !options->all && !options->config_path)
		return options_refuse_usage(command, "GROUP, --all or --config is missing",
					    failure);
	return 0;
}

/* The file has to be one that the daemon can read: with its capabilities, and not with all of root's. */
static int check_only(const struct daemon_options *options, struct failure *failure)
{
	struct orders orders CLEANUP(orders_done) = {};
	int err = privileges_lower(failure);

	if (!err)
		err = orders_init(options, &orders, failure);
	if (!err)
		orders_print(&orders, stdout);
	return err;
}

static int run(const struct options *options, struct failure *failure)
{
	struct group_spec specs[MAX_RUN_GROUPS];
	struct daemon_options daemon = {
		.specs = specs,
		.nr_specs = options->nr_arguments,
		.all = options->all,
		.patterns = options->patterns,
		.config_path = options->config_path,
		.detach_on_exit = options->detach_on_exit,
		.metrics = options->has_metrics ? &options->metrics : NULL,
		.print_metrics = metrics_print,
	};
	size_t i;
	int err = 0;

	for (i = 0; i < options->nr_arguments && !err; i++)
		err = options_parse_group(options->arguments[i], options, &specs[i], failure);
	if (!err && options->has_policy)
		err = choice_set(&daemon.choice, "policy", policy_name(options->policy), failure);
	if (err)
		return err;
	return options->check ? check_only(&daemon, failure) : daemon_run(&daemon, failure);
}

int command_run(int argc, char **argv, struct failure *failure)
{
	const struct command *command = command_find("run");
	struct options options;
	int err;

	err = options_parse(command, argc, argv, &options, failure);
	if (err)
		return err;
	if (options.help) {
		help_print_command(command, stdout);
		return 0;
	}
	err = check_options(command, &options, failure);
	return err ? err : run(&options, failure);
}
