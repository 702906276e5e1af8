/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/cli.h"

#include "cli/options.h"

const char detach_help[] =
	"Ends what \"socksteer attach\" began: from the next connection on the kernel's own\n"
	"hash chooses the listener. Connections that are open stay open. Counters of the\n"
	"group are gone.\n";

const char detach_option_help[] =
	"      --all           all groups, and whatever else of socksteer is in the kernel,\n"
	"                      also what an attach has left that was killed\n";

const char detach_more[] =
	"Exit codes: 0 done, also if --all found nothing; 1 failed; 2 usage; 3 a right is\n"
	"missing; 4 the group is not steered.\n"
	"\n"
	"Examples:\n"
	"  socksteer detach :8080\n"
	"  socksteer detach --all\n";

static int detach_all(struct failure *failure)
{
	size_t nr_groups;
	int err;

	err = group_detach_all(&nr_groups, failure);
	if (err)
		return err;
	if (nr_groups)
		printf("%zu group%s: no longer steered\n", nr_groups, nr_groups == 1 ? "" : "s");
	else
		puts("no group was steered");
	return 0;
}

static int detach_one(const struct group_spec *group, struct failure *failure)
{
	char name[ADDRESS_TEXT_SIZE];
	int err;

	err = group_detach(group, name, failure);
	if (!err)
		printf("%s: no longer steered\n", name);
	return err;
}

int command_detach(int argc, char **argv, struct failure *failure)
{
	const struct command *command = command_find("detach");
	struct options options;
	int err;

	err = options_parse(command, argc, argv, &options, failure);
	if (err)
		return err;
	if (options.help) {
		help_print_command(command, stdout);
		return 0;
	}
	if (options.all && options.has_group)
		return options_refuse_usage(command, "GROUP and --all exclude each other", failure);
	if (options.all)
		return detach_all(failure);
	if (!options.has_group)
		return options_refuse_usage(command, "GROUP or --all is missing", failure);
	return detach_one(&options.group, failure);
}
