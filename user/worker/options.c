/* SPDX-License-Identifier: GPL-2.0-only */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	OPT_SHARED = 256,
	OPT_NO_REUSEPORT,
	OPT_MPTCP,
	OPT_BLOCKING,
	OPT_RESPAWN,
};

static const struct option long_options[] = {
	{ "address", required_argument, NULL, 'a' },
	{ "port", required_argument, NULL, 'p' },
	{ "workers", required_argument, NULL, 'w' },
	{ "backlog", required_argument, NULL, 'b' },
	{ "threads", no_argument, NULL, 't' },
	{ "help", no_argument, NULL, 'h' },
	{ "no-reuseport", no_argument, NULL, OPT_NO_REUSEPORT },
	{ "shared", no_argument, NULL, OPT_SHARED },
	{ "mptcp", no_argument, NULL, OPT_MPTCP },
	{ "blocking", no_argument, NULL, OPT_BLOCKING },
	{ "respawn", no_argument, NULL, OPT_RESPAWN },
	{ NULL, 0, NULL, 0 },
};

static const char help_text[] =
	"Usage: epoll-worker [OPTION]...\n"
	"\n"
	"A plain HTTP server to try things on: N workers, each with a listener and an epoll\n"
	"instance of its own. The kernel spreads new connections over the listeners.\n"
	"\n"
	"Where to listen:\n"
	"  -a, --address ADDR   IPv4 or IPv6 address (default 127.0.0.1)\n"
	"  -p, --port N         port; 0 picks a free one, the same for all workers (default 8080)\n"
	"  -b, --backlog N      longest accept queue of each listener (default 511)\n"
	"      --mptcp          listen with Multipath TCP, as Go servers do since 1.24\n"
	"\n"
	"Who serves:\n"
	"  -w, --workers N      number of workers, 1 to 1024 (default 4)\n"
	"  -t, --threads        workers are threads of one process, not processes\n"
	"      --blocking       a worker waits in accept() and serves one connection until it\n"
	"                       ends, instead of waiting in epoll for all of them\n"
	"      --respawn        start a worker again when a signal has ended it\n"
	"\n"
	"Common mistakes, for comparison:\n"
	"      --shared         one SO_REUSEPORT listener opened before the workers exist and\n"
	"                       inherited by all of them\n"
	"      --no-reuseport   the same without SO_REUSEPORT\n"
	"\n"
	"  -h, --help           show this text\n"
	"\n"
	"Once every worker listens, one line on standard output names them:\n"
	"  ready 127.0.0.1:8080 pids 4211 4212 4213 4214\n"
	"Worker 0 has the first pid. With --threads the pid is the same each time.\n"
	"\n"
	"Paths, GET only:\n"
	"  /                    answers \"worker 0 pid 4211\", as do the others\n"
	"  /sleep/MS            blocks the worker for MS milliseconds first, such as /sleep/1.5\n"
	"  /spin/MS             uses MS milliseconds of processor time first\n"
	"  /hold                answers and keeps the connection until the client closes it\n"
	"\n"
	"SIGTERM or Ctrl-C ends the server and all its workers.\n"
	"\n"
	"Example:\n"
	"  epoll-worker --workers 4 --port 8080 &\n"
	"  curl http://127.0.0.1:8080/sleep/20\n";

/* Points to --help after the sentence that says what is wrong. */
static int usage_error(const char *option, const char *problem)
{
	fprintf(stderr, "epoll-worker: %s %s; see epoll-worker --help\n", option, problem);
	return -EINVAL;
}

static int parse_count(const char *text, long min, long max, long *ret_count)
{
	char *end;
	long count;

	errno = 0;
	count = strtol(text, &end, 10);
	if (errno || end == text || *end || count < min || count > max)
		return -EINVAL;
	*ret_count = count;
	return 0;
}

static int parse_numbers(int letter, char *argument, struct worker_options *options)
{
	long number;

	switch (letter) {
	case 'p':
		if (parse_count(argument, 0, 65535, &number))
			return usage_error("--port", "takes a number from 0 to 65535");
		options->port = argument;
		return 0;
	case 'w':
		if (parse_count(argument, 1, WORKERS_MAX, &number))
			return usage_error("--workers", "takes a number from 1 to 1024");
		options->nr_workers = (unsigned int)number;
		return 0;
	default:
		if (parse_count(argument, 0, 65535, &number))
			return usage_error("--backlog", "takes a number from 0 to 65535");
		options->backlog = (int)number;
		return 0;
	}
}

static int parse_option(int letter, char *argument, struct worker_options *options)
{
	switch (letter) {
	case 'a':
		options->address = argument;
		return 0;
	case 'p':
	case 'w':
	case 'b':
		return parse_numbers(letter, argument, options);
	case 't':
		options->has_threads = true;
		return 0;
	case OPT_NO_REUSEPORT:
		options->has_reuseport = false;
		return 0;
	case OPT_SHARED:
		options->has_shared_listener = true;
		return 0;
	case OPT_MPTCP:
		options->has_mptcp = true;
		return 0;
	case OPT_BLOCKING:
		options->is_blocking = true;
		return 0;
	case OPT_RESPAWN:
		options->has_respawn = true;
		return 0;
	case 'h':
		fputs(help_text, stdout);
		return -ECANCELED;
	default:
		/* getopt_long() has named the option already. */
		fputs("epoll-worker: see epoll-worker --help\n", stderr);
		return -EINVAL;
	}
}

static int check_options(struct worker_options *options)
{
	if (options->has_shared_listener && !options->has_reuseport)
		return usage_error("--shared", "and --no-reuseport exclude each other");
	if (options->has_threads && options->has_respawn)
		return usage_error("--respawn", "needs processes, a thread does not die alone");
	/* Without SO_REUSEPORT there can be only one listener on the port. */
	if (!options->has_reuseport)
		options->has_shared_listener = true;
	return 0;
}

int worker_options_parse(int argc, char **argv, struct worker_options *ret_options)
{
	struct worker_options options = {
		.address = "127.0.0.1",
		.port = "8080",
		.nr_workers = 4,
		.backlog = 511, /* What nginx and Redis use. */
		.has_reuseport = true,
	};
	int letter, err;

	while ((letter = getopt_long(argc, argv, "a:p:w:b:th", long_options, NULL)) != -1) {
		err = parse_option(letter, optarg, &options);
		if (err)
			return err;
	}
	if (optind < argc)
		return usage_error(argv[optind], "is not an option");
	err = check_options(&options);
	if (err)
		return err;
	*ret_options = options;
	return 0;
}
