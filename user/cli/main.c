/* SPDX-License-Identifier: GPL-2.0-only */
/* socksteer: the one place that prints a failure and turns it into an exit code. */
#include "cli/cli.h"

#include <sys/resource.h>

/* Each steered group takes some ten descriptors, and the usual soft limit is for select(). */
static void raise_file_limit(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

int main(int argc, char **argv)
{
	struct failure failure = {};

	raise_file_limit();
	if (!cli_run(argc, argv, &failure))
		return EXIT_DONE;
	if (failure.code != EXIT_UNREAD)
		fprintf(stderr, "socksteer: %s\n", failure.message);
	return (int)failure.code;
}
