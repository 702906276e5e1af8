/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Acting on a steered group while it runs, with or without a daemon: settings of the group, weight
 * and draining of its workers. All of it is written to the pinned maps under the lock of the pins
 * and acts from the next connection on.
 *
 * The table of workers is shared by all groups, so what is done to a worker is done in every group
 * in which it has a listener.
 *
 * All functions: 0 or -errno with *failure filled; a group that is not steered is EXIT_NOTHING.
 */
#ifndef SOCKSTEER_STEERING_OPERATE_H
#define SOCKSTEER_STEERING_OPERATE_H

#include "base/failure.h"
#include "base/text.h"
#include "steering/inventory.h"
#include "steering/worker_spec.h"

/* What becomes of a worker; zero leaves all as it is. */
struct worker_change {
	uint32_t set_flags; /* enum worker_flag */
	uint32_t clear_flags;
	uint32_t weight; /* 1..MAX_WEIGHT, 0 to keep it */
};

/* Room for the names of other groups; more are cut. */
#define OTHERS_TEXT_SIZE 256

struct worker_report {
	char group[ADDRESS_TEXT_SIZE]; /* the group's name */
	char worker[WORKER_TEXT_SIZE]; /* the worker's, escaped */
	char others[OTHERS_TEXT_SIZE]; /* other groups in which it has listeners: "[::]:443", or "" */
	struct worker before; /* its row before and after the change */
	struct worker after;
	uint32_t row;
	uint64_t held; /* connections of the worker, over all its listeners */
	bool all_drain; /* every worker of the group drains, so each gets connections */
	bool not_avoided; /* policy hash, or a listener without a slot: the kernel's hash chooses */
};

/* Changes one worker of the group. */
int worker_change(const struct group_spec *spec, const struct worker_spec *worker,
		  const struct worker_change *change, struct worker_report *ret_report,
		  struct failure *failure);

/* One key of steering/setting.h and its new value. */
struct setting_pair {
	const char *name;
	const char *value;
};

struct settings_report {
	char group[ADDRESS_TEXT_SIZE];
	struct settings before;
	struct settings after;
};

/*
 * Sets several keys, all or none: the first pair that is wrong fails with EXIT_USAGE before anything
 * is written, and before any right is asked for. Without pairs it only looks, and the group need not
 * be steered at the moment.
 */
int group_set(const struct group_spec *spec, const struct setting_pair *pairs, size_t nr_pairs,
	      struct settings_report *ret_report, struct failure *failure);

/* Switches the policy: group_set() with that one key. */
int group_set_policy(const struct group_spec *spec, enum policy policy,
		     char ret_name[ADDRESS_TEXT_SIZE], struct failure *failure);

#endif
