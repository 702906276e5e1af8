/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/cli.h"

#include "base/text.h"
#include "cli/options.h"
#include "steering/names.h"
#include "steering/setting.h"

#include <errno.h>
#include <string.h>

const char help_help[] = "Explains COMMAND, or lists the commands.\n";

const char help_more[] = "Example:\n"
			 "  socksteer help attach\n";

static void print_policies(FILE *out)
{
	size_t i;

	fputs("\nPolicies:\n", out);
	for (i = 0; i < NR_POLICIES; i++)
		fprintf(out, "  %-13s %s\n", policy_name((enum policy)i),
			policy_text((enum policy)i));
}

static void print_settings(FILE *out)
{
	const struct setting *setting;

	fputs("\nSettings:\n", out);
	for (setting = settings_keys; setting->name; setting++)
		fprintf(out, "  %s=%s\n      %s\n", setting->name, setting->value, setting->text);
}

static void print_options(const struct command *command, FILE *out)
{
	if (command->takes_group)
		fputs("\nGROUP is ADDR:PORT, [V6]:PORT, :PORT or PORT.\n", out);
	if (command->takes_worker)
		fputs("WORKER is a slot number, a pid, or COMMAND:PID, as \"socksteer status\" shows\n"
		      "them; slot:N and pid:N say which of the two a number is.\n",
		      out);
	fputs("\nOptions:\n", out);
	if (command->option_help)
		fputs(command->option_help, out);
	if (command->takes_group)
		fputs("      --pid PID       the group of which this process holds a listener\n"
		      "      --netns INODE|PATH\n"
		      "                      the group in this network namespace: its inode number,\n"
		      "                      or a file such as /run/netns/NAME or /proc/PID/ns/net\n",
		      out);
	fputs("  -h, --help          show this text\n", out);
}

void help_print_command(const struct command *command, FILE *out)
{
	fprintf(out, "Usage: socksteer %s%s%s\n\n%s", command->name, command->usage[0] ? " " : "",
		command->usage, command->help);
	print_options(command, out);
	if (command->lists_settings)
		print_settings(out);
	if (command->lists_policies)
		print_policies(out);
	fprintf(out, "\n%s", command->more);
}

void help_print_overview(FILE *out)
{
	const struct command *command;

	fputs("Usage: socksteer COMMAND [ARGUMENT]...\n"
	      "\n"
	      "Several workers listen on one TCP port with SO_REUSEPORT: socksteer makes the kernel\n"
	      "hand each new connection to the worker that has least to do.\n"
	      "\n"
	      "Commands:\n",
	      out);
	for (command = commands; command->name; command++)
		fprintf(out, "  %-8s %s\n", command->name, command->summary);
	fputs("\n"
	      "\"socksteer help COMMAND\" explains one.\n"
	      "\n"
	      "Exit codes:\n"
	      "  0  done\n"
	      "  1  failed\n"
	      "  2  usage\n"
	      "  3  the kernel lacks something, or a right is missing\n"
	      "  4  nothing to steer\n"
	      "\n"
	      "Example:\n"
	      "  socksteer list\n"
	      "  socksteer attach :8080\n"
	      "  socksteer status\n",
	      out);
}

int command_help(int argc, char **argv, struct failure *failure)
{
	const struct command *command = command_find("help");
	struct options options;
	char name[64];
	int err;

	err = options_parse(command, argc, argv, &options, failure);
	if (err)
		return err;
	if (!options.help && !options.nr_arguments) {
		help_print_overview(stdout);
		return 0;
	}
	if (!options.help)
		command = command_find(options.arguments[0]);
	if (command) {
		help_print_command(command, stdout);
		return 0;
	}
	text_escape(options.arguments[0], strlen(options.arguments[0]), name, sizeof(name));
	return failure_set(failure, EXIT_USAGE, EINVAL,
			   "there is no command \"%s\"; \"socksteer help\" lists them", name);
}
