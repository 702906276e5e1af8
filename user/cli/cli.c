/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/cli.h"

#include "base/text.h"
#include "cli/options.h"
#include "cli/run.h"
#include "cli/set.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#define TELL_GROUPS_APART (OPTION_PID | OPTION_NETNS)

const struct command commands[] = {
	{
		.name = "list",
		.usage = "[--json]",
		.summary = "show what listens on this machine, and what can be steered",
		.help = list_help,
		.option_help = list_option_help,
		.more = list_more,
		.options = OPTION_JSON,
		.run = command_list,
	},
	{
		.name = "attach",
		.usage = "GROUP [--policy NAME] [--pid PID] [--netns INODE|PATH] [--force]",
		.summary = "begin to steer new connections of a group",
		.help = attach_help,
		.option_help = attach_option_help,
		.more = attach_more,
		.options = OPTION_POLICY | OPTION_FORCE | TELL_GROUPS_APART,
		.min_arguments = 1,
		.max_arguments = 1,
		.takes_group = true,
		.lists_policies = true,
		.run = command_attach,
	},
	{
		.name = "detach",
		.usage = "GROUP [--pid PID] [--netns INODE|PATH] | --all",
		.summary = "end it, and leave the group to the kernel's hash",
		.help = detach_help,
		.option_help = detach_option_help,
		.more = detach_more,
		.options = OPTION_ALL | TELL_GROUPS_APART,
		.max_arguments = 1,
		.takes_group = true,
		.run = command_detach,
	},
	{
		.name = "status",
		.usage = "[GROUP] [--pid PID] [--netns INODE|PATH] [--json] [--watch[=SECONDS]]",
		.summary = "show the load and the share of each listener of the steered groups",
		.help = status_help,
		.option_help = status_option_help,
		.more = status_more,
		.options = OPTION_JSON | OPTION_WATCH | TELL_GROUPS_APART,
		.max_arguments = 1,
		.takes_group = true,
		.run = command_status,
	},
	{
		.name = "top",
		.usage = "[GROUP] [--pid PID] [--netns INODE|PATH] [--interval TIME] "
			 "[--once [--width COLUMNS]]",
		.summary = "watch the load of all listeners on a terminal",
		.help = top_help,
		.option_help = top_option_help,
		.more = top_more,
		.options = OPTION_INTERVAL | OPTION_ONCE | OPTION_WIDTH | TELL_GROUPS_APART,
		.max_arguments = 1,
		.takes_group = true,
		.run = command_top,
	},
	{
		.name = "events",
		.usage = "[--json] [--for DURATION]",
		.summary = "show what happens, as it happens",
		.help = events_help,
		.option_help = events_option_help,
		.more = events_more,
		.options = OPTION_JSON | OPTION_FOR,
		.run = command_events,
	},
	{
		.name = "metrics",
		.usage = "",
		.summary = "print the same figures once, as Prometheus reads them",
		.help = metrics_help,
		.more = metrics_more,
		.run = command_metrics,
	},
	{
		.name = "policy",
		.usage = "GROUP NAME [--pid PID] [--netns INODE|PATH]",
		.summary = "switch the policy of a steered group",
		.help = policy_help,
		.more = policy_more,
		.options = TELL_GROUPS_APART,
		.min_arguments = 2,
		.max_arguments = 2,
		.takes_group = true,
		.lists_policies = true,
		.run = command_policy,
	},
	{
		.name = "set",
		.usage = "GROUP [KEY=VALUE]... [--pid PID] [--netns INODE|PATH] [--json]",
		.summary = "show or change the settings of a steered group",
		.help = set_help,
		.option_help = set_option_help,
		.more = set_more,
		.options = OPTION_JSON | TELL_GROUPS_APART,
		.min_arguments = 1,
		.max_arguments = 1 + MAX_SET_PAIRS,
		.takes_group = true,
		.lists_policies = true,
		.lists_settings = true,
		.run = command_set,
	},
	{
		.name = "drain",
		.usage = "GROUP WORKER [--wait [TIMEOUT]] [--pid PID] [--netns INODE|PATH]",
		.summary = "give a worker no new connections, and let it finish those it holds",
		.help = drain_help,
		.option_help = drain_option_help,
		.more = drain_more,
		.options = OPTION_WAIT | TELL_GROUPS_APART,
		.min_arguments = 2,
		.max_arguments = 2,
		.takes_group = true,
		.takes_worker = true,
		.run = command_drain,
	},
	{
		.name = "resume",
		.usage = "GROUP WORKER [--pid PID] [--netns INODE|PATH]",
		.summary = "give a draining worker connections again",
		.help = resume_help,
		.more = resume_more,
		.options = TELL_GROUPS_APART,
		.min_arguments = 2,
		.max_arguments = 2,
		.takes_group = true,
		.takes_worker = true,
		.run = command_resume,
	},
	{
		.name = "weight",
		.usage = "GROUP WORKER WEIGHT [--pid PID] [--netns INODE|PATH]",
		.summary = "set the share of a worker relative to the others",
		.help = weight_help,
		.more = weight_more,
		.options = TELL_GROUPS_APART,
		.min_arguments = 3,
		.max_arguments = 3,
		.takes_group = true,
		.takes_worker = true,
		.run = command_weight,
	},
	{
		.name = "rescue",
		.usage = "GROUP WORKER [--json] [--pid PID] [--netns INODE|PATH]",
		.summary = "move what waits for a worker that hangs to other workers",
		.help = rescue_help,
		.option_help = rescue_option_help,
		.more = rescue_more,
		.options = OPTION_JSON | TELL_GROUPS_APART,
		.min_arguments = 2,
		.max_arguments = 2,
		.takes_group = true,
		.takes_worker = true,
		.run = command_rescue,
	},
	{
		.name = "audit",
		.usage = "[GROUP] [--repair] [--json] [--pid PID] [--netns INODE|PATH]",
		.summary = "compare the counters with the kernel's sockets",
		.help = audit_help,
		.option_help = audit_option_help,
		.more = audit_more,
		.options = OPTION_REPAIR | OPTION_JSON | TELL_GROUPS_APART,
		.max_arguments = 1,
		.takes_group = true,
		.run = command_audit,
	},
	{
		.name = "run",
		.usage = "[GROUP...] [--config FILE] [--check] [--all [--match KEY=GLOB]...] "
			 "[--policy NAME] [--pid PID] [--netns INODE|PATH] [--detach-on-exit] "
			 "[--metrics ADDR:PORT]",
		.summary = "keep groups steered while listeners come and go",
		.help = run_help,
		.option_help = run_option_help,
		.more = run_more,
		.options = OPTION_CONFIG | OPTION_CHECK | OPTION_ALL | OPTION_MATCH |
			   OPTION_POLICY | OPTION_DETACH_ON_EXIT | OPTION_METRICS |
			   TELL_GROUPS_APART,
		.max_arguments = MAX_RUN_GROUPS,
		.takes_group = true,
		.lists_policies = true,
		.run = command_run,
	},
	{
		.name = "version",
		.usage = "",
		.summary = "print the version",
		.help = version_help,
		.more = version_more,
		.run = command_version,
	},
	{
		.name = "help",
		.usage = "[COMMAND]",
		.summary = "explain a command",
		.help = help_help,
		.more = help_more,
		.max_arguments = 1,
		.run = command_help,
	},
	{ .name = NULL },
};

const struct command *command_find(const char *name)
{
	const struct command *command;

	for (command = commands; command->name; command++)
		if (!strcmp(command->name, name))
			return command;
	return NULL;
}

/* The options that may stand in place of a command are commands too. */
static const char *command_name(const char *argument)
{
	if (!strcmp(argument, "--help") || !strcmp(argument, "-h"))
		return "help";
	return strcmp(argument, "--version") ? argument : "version";
}

/* Asked of the pipe: the write that failed may have been long ago, and its errno is lost then. */
static bool reader_is_gone(void)
{
	struct pollfd output = { .fd = STDOUT_FILENO };

	return poll(&output, 1, 0) > 0 && output.revents & (POLLERR | POLLHUP);
}

/*
 * Output that nobody got is a failure too: the disk is full, or the reader of a pipe is gone. The latter
 * is what "| head -1" does, and as quiet as if SIGPIPE had ended the command.
 */
static int flush_output(struct failure *failure)
{
	int err = 0;

	errno = 0;
	if (fflush(stdout) || ferror(stdout))
		err = errno ? errno : EIO;
	if (!err)
		return 0;
	if (err == EPIPE || reader_is_gone())
		return failure_set(failure, EXIT_UNREAD, EPIPE, "%s", "");
	return failure_set(failure, EXIT_FAILED, err, "cannot write to standard output: %s",
			   strerror(err));
}

static int run_command(const struct command *command, int argc, char **argv,
		       struct failure *failure)
{
	int err = command->run(argc, argv, failure);
	int write_err;

	/* A command that says why it failed is more to the point than what its output suffered. */
	if (err && failure->code != EXIT_DONE)
		return err;
	write_err = flush_output(failure);
	if (write_err)
		return write_err;
	if (err)
		failure_set(failure, EXIT_FAILED, -err, "%s failed: %s", command->name,
			    strerror(-err));
	return err;
}

int cli_run(int argc, char **argv, struct failure *failure)
{
	const struct command *command;
	char name[64];

	/* A closed pipe shows as a failed write, and an attach is not torn in its midst. */
	signal(SIGPIPE, SIG_IGN);
	if (argc < 2)
		return failure_set(failure, EXIT_USAGE, EINVAL,
				   "a command is missing; \"socksteer help\" lists them");
	command = command_find(command_name(argv[1]));
	if (command)
		return run_command(command, argc - 1, argv + 1, failure);
	text_escape(argv[1], strlen(argv[1]), name, sizeof(name));
	return failure_set(failure, EXIT_USAGE, EINVAL,
			   "there is no command \"%s\"; \"socksteer help\" lists them", name);
}
