/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The command line of one command as a struct. Options may stand anywhere; every mistake is a usage
 * error (EXIT_USAGE) that says what was wrong and what would be right. Opens nothing but the
 * network namespace that --netns names, and that only for a look.
 */
#ifndef SOCKSTEER_CLI_OPTIONS_H
#define SOCKSTEER_CLI_OPTIONS_H

#include "base/failure.h"
#include "cli/cli.h"
#include "daemon/loopback.h"
#include "steering/inventory.h"
#include "steering/pattern.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every command takes --help as well. The values stay clear of the letters that getopt returns. */
enum option_set {
	OPTION_JSON = 1 << 8,
	OPTION_ALL = 1 << 9,
	OPTION_FORCE = 1 << 10,
	OPTION_POLICY = 1 << 11,
	OPTION_PID = 1 << 12,
	OPTION_NETNS = 1 << 13,
	OPTION_DETACH_ON_EXIT = 1 << 14,
	OPTION_REPAIR = 1 << 15,
	OPTION_WAIT = 1 << 16,
	OPTION_CONFIG = 1 << 17,
	OPTION_CHECK = 1 << 18,
	OPTION_MATCH = 1 << 19,
	OPTION_WATCH = 1 << 20,
	OPTION_INTERVAL = 1 << 21,
	OPTION_ONCE = 1 << 22,
	OPTION_WIDTH = 1 << 23,
	OPTION_FOR = 1 << 24,
	OPTION_METRICS = 1 << 25,
};

/* What --width takes. */
#define MIN_WIDTH 20
#define MAX_WIDTH 1000

struct options {
	bool help; /* --help was given; nothing else counts then */
	bool json;
	bool all;
	bool force;
	bool detach_on_exit;
	bool repair;
	bool wait;
	uint64_t timeout_ns; /* of --wait; UINT64_MAX without one */
	bool check;
	const char *config_path; /* NULL without --config; borrowed from argv */
	struct patterns patterns; /* of --match */
	bool has_metrics;
	struct loopback metrics; /* where to serve them */
	enum policy policy; /* the default one unless --policy was given */
	bool has_policy;
	bool watch;
	uint64_t interval_ns; /* of --watch or --interval, a second by default */
	uint64_t for_ns; /* 0 without --for */
	bool once;
	uint32_t width; /* 0 without --width */
	bool has_group;
	struct group_spec group; /* with --pid and --netns */
	char **arguments; /* besides options, the group included; borrowed from argv */
	size_t nr_arguments;
};

/* 0, or -EINVAL with *failure filled and *ret_options untouched. Reorders argv. */
int options_parse(const struct command *command, int argc, char **argv, struct options *ret_options,
		  struct failure *failure);

/* The policy of that name, or -EINVAL with a failure that lists all of them. */
int options_parse_policy(const char *name, enum policy *ret_policy, struct failure *failure);

/* A GROUP with the --pid and --netns of the options; -EINVAL with a failure. text is borrowed. */
int options_parse_group(const char *text, const struct options *options,
			struct group_spec *ret_group, struct failure *failure);

/* A usage error of the command, ended with how it is used. Returns -EINVAL. */
int options_refuse_usage(const struct command *command, const char *problem,
			 struct failure *failure);

#endif
