/* SPDX-License-Identifier: GPL-2.0-only */
/* epoll-worker: reads the command line, starts the crew, announces it, and waits for the end. */
#include "crew.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* The exit code for a command line that makes no sense. */
#define EXIT_USAGE 2

/* Many held connections are normal here, and the soft limit is often 1024. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void announce(const struct crew *crew)
{
	char where[ENDPOINT_TEXT_BYTES];

	endpoint_format(&crew->endpoint, where);
	printf("ready %s pids", where);
	for (unsigned int number = 0; number < crew->options->nr_workers; number++)
		printf(" %d", crew->pids[number]);
	printf("\n");
	fflush(stdout);
}

static int serve(const struct worker_options *options)
{
	struct crew crew;
	int err = crew_init(&crew, options);

	if (err)
		fprintf(stderr, "epoll-worker: cannot listen on %s port %s: %s\n", options->address,
			options->port, strerror(-err));
	else
		err = crew_start(&crew);
	if (!err) {
		announce(&crew);
		err = crew_wait(&crew);
		if (err == -ECHILD)
			fputs("epoll-worker: no worker is left, so the server ends\n", stderr);
	}
	crew_done(&crew);
	return err;
}

int main(int argc, char **argv)
{
	struct worker_options options;
	int err = worker_options_parse(argc, argv, &options);

	if (err)
		return err == -ECANCELED ? EXIT_SUCCESS : EXIT_USAGE;
	raise_descriptor_limit();
	signal(SIGPIPE, SIG_IGN);
	return serve(&options) ? EXIT_FAILURE : EXIT_SUCCESS;
}
