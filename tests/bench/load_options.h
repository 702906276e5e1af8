/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * load_options: the command line of the load generator, read and checked as a whole.
 */
#ifndef BENCH_LOAD_OPTIONS_H
#define BENCH_LOAD_OPTIONS_H

#include "mix.h"
#include "target.h"

#include <stdbool.h>

enum load_mode {
	LOAD_OPEN, /* Arrivals do not wait for answers, like users. */
	LOAD_RATE, /* A fixed number outstanding, as fast as the server allows. */
	LOAD_HOLD, /* Opens connections and keeps them. */
};

struct load_options {
	enum load_mode mode;
	struct target target;
	struct mix mix;
	double rate; /* Connections per second, from --rate or computed from --load. */
	double load; /* 0: not given. */
	double seconds;
	unsigned int nr_workers; /* 0: not given, and no ideal is computed. */
	uint64_t seed;
	uint64_t timeout_ns;
	unsigned int nr_connections;
	unsigned int nr_parallel;
	const char *log_path; /* Borrowed from argv; NULL: not given. */
	bool has_progress;
	bool has_json;
};

/* 0; -ECANCELED after --help; -EINVAL after a sentence on standard error. */
int load_options_parse(int argc, char **argv, struct load_options *ret_options);

#endif
