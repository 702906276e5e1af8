/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/cli.h"

#include "cli/options.h"
#include "socksteer/types.h"

const char version_help[] =
	"Prints the version of socksteer and the version of the layout of its maps. Maps of\n"
	"another layout are refused, and removed by \"socksteer detach --all\".\n";

const char version_more[] = "Example:\n"
			    "  socksteer version\n";

int command_version(int argc, char **argv, struct failure *failure)
{
	const struct command *command = command_find("version");
	struct options options;
	int err;

	err = options_parse(command, argc, argv, &options, failure);
	if (err)
		return err;
	if (options.help)
		help_print_command(command, stdout);
	else
		printf("socksteer %s (layout %d)\n", SOCKSTEER_VERSION, LAYOUT_VERSION);
	return 0;
}
