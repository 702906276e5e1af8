/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Beginning and ending to steer a group. All or nothing: when anything fails, the group is left as
 * it was found, and what an earlier, killed attempt left behind is cleared away first.
 *
 * All functions: 0 or -errno with *failure filled. They take the lock of the pins and wait for it
 * for a few seconds at most.
 */
#ifndef SOCKSTEER_STEERING_ATTACH_H
#define SOCKSTEER_STEERING_ATTACH_H

#include "base/failure.h"
#include "base/text.h"
#include "steering/choice.h"
#include "steering/inventory.h"
#include <stdbool.h>
#include <stddef.h>

struct attach_options {
	enum policy policy;
	const struct choice *choice; /* settings, the policy among them if it is in there; or NULL */
	bool force; /* replace a program that somebody else attached */
	bool keep_tables; /* a failure leaves the shared tables, which the caller uses on */
};

struct attach_report {
	char name[ADDRESS_TEXT_SIZE]; /* the group's address */
	bool already; /* it was steered already; nothing was changed but nr_added */
	size_t nr_added; /* listeners that joined since it was steered */
	size_t nr_listeners;
	size_t nr_workers;
	uint64_t nr_seeded; /* connections that were open before */
	char signals_missing[256]; /* names of live signals this kernel does not give, or "" */
};

int group_attach(const struct group_spec *spec, const struct attach_options *options,
		 struct attach_report *ret_report, struct failure *failure);

/* Ends steering of one group: program, slots and pins; with the last group the tracking too. */
int group_detach(const struct group_spec *spec, char ret_name[ADDRESS_TEXT_SIZE],
		 struct failure *failure);

/* The same for all groups and everything else of ours that is pinned. Nothing pinned is no error. */
int group_detach_all(size_t *ret_nr_groups, struct failure *failure);

#endif
