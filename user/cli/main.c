/* SPDX-License-Identifier: GPL-2.0-only */
/* socksteer: the one place that prints a failure and turns it into an exit code. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
	struct failure failure = {};

	if (!cli_run(argc, argv, &failure))
		return EXIT_DONE;
	fprintf(stderr, "socksteer: %s\n", failure.message);
	return (int)failure.code;
}
