/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/cli.h"

#include "base/cleanup.h"
#include "cli/options.h"
#include "show/list.h"
#include "steering/scan.h"

const char list_help[] =
	"Shows every listening TCP socket of every process in every network namespace, one\n"
	"line for each group: the listeners that share an address and port with\n"
	"SO_REUSEPORT. A group of two or more can be steered; NOTE says why another cannot.\n"
	"\n"
	"  ADDRESS    address and port, and %DEVICE if the group is bound to a device\n"
	"  NETNS      network namespace, as an inode number\n"
	"  LISTENERS  listening sockets\n"
	"  WORKERS    command and pids of the processes that accept; pid(2) is a process\n"
	"             with two event loops, +12 are twelve more workers\n"
	"  STEERED    socksteer, no, or the program that somebody else has attached\n";

const char list_option_help[] =
	"      --json          print JSON, with the state of each listener\n";

const char list_more[] = "Exit codes: 0 done, 3 a right or something of the kernel is missing.\n"
			 "\n"
			 "Examples:\n"
			 "  socksteer list\n"
			 "  socksteer list --json | jq '.groups[] | select(.steerable)'\n";

int command_list(int argc, char **argv, struct failure *failure)
{
	const struct command *command = command_find("list");
	CLEANUP(inventory_done) struct inventory inventory = {};
	struct options options;
	int err;

	err = options_parse(command, argc, argv, &options, failure);
	if (err)
		return err;
	if (options.help) {
		help_print_command(command, stdout);
		return 0;
	}
	err = inventory_scan(&inventory, failure);
	if (err)
		return err;
	return options.json ? list_print_json(&inventory, stdout) :
			      list_print_table(&inventory, stdout);
}
