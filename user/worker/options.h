/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * options: the command line of epoll-worker as a struct. Knows which options contradict each
 * other; opens nothing.
 */
#ifndef WORKER_OPTIONS_H
#define WORKER_OPTIONS_H

#include <stdbool.h>

/* As many as one socksteer group is ever tested with; a typing error should not fork a million. */
#define WORKERS_MAX 1024

struct worker_options {
	const char *address; /* Borrowed from argv. */
	const char *port; /* Borrowed from argv; "0" means a free one. */
	unsigned int nr_workers;
	int backlog;
	bool has_reuseport; /* Cleared by --no-reuseport. */
	bool has_shared_listener; /* One listener, opened before the workers exist. */
	bool has_threads;
	bool has_mptcp;
	bool is_blocking;
	bool has_respawn;
};

/*
 * Returns 0; -ECANCELED when --help was asked for and printed; -EINVAL when the command line
 * makes no sense, after one sentence on standard error.
 */
int worker_options_parse(int argc, char **argv, struct worker_options *ret_options);

#endif
