/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/cli.h"

#include "cli/options.h"
#include "steering/names.h"
#include "steering/operate.h"

const char policy_help[] =
	"Switches how the listeners of a steered group are chosen. It acts from the next\n"
	"connection on; nothing is attached anew and no counter is lost.\n";

const char policy_more[] =
	"Exit codes: 0 done; 1 failed; 2 usage; 3 a right is missing; 4 the group is not\n"
	"steered.\n"
	"\n"
	"Examples:\n"
	"  socksteer policy :8080 p2c\n"
	"  socksteer policy '[::1]:443' hash\n";

int command_policy(int argc, char **argv, struct failure *failure)
{
	const struct command *command = command_find("policy");
	char name[ADDRESS_TEXT_SIZE];
	struct options options;
	enum policy policy;
	int err;

	err = options_parse(command, argc, argv, &options, failure);
	if (err)
		return err;
	if (options.help) {
		help_print_command(command, stdout);
		return 0;
	}
	err = options_parse_policy(options.arguments[1], &policy, failure);
	if (!err)
		err = group_set_policy(&options.group, policy, name, failure);
	if (!err)
		printf("%s: steered by %s from now on\n", name, policy_name(policy));
	return err;
}
