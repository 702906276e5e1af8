/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The groups that are pinned: what a person can detach, look at or switch.
 */
#ifndef SOCKSTEER_STEERING_PINNED_H
#define SOCKSTEER_STEERING_PINNED_H

#include "base/failure.h"
#include "kernel/group_maps.h"
#include "kernel/tables.h"
#include "steering/inventory.h"

struct pinned_group {
	char *folder; /* owned */
	struct group_maps maps; /* owned; some may be missing if the folder is not whole */
	struct settings settings;
	bool whole; /* every pin is there and its attach was finished */
	bool known; /* settings tell which group it is for, whole or not */
	int err; /* why it cannot be read, which is more than that it is not whole; 0 or -errno */
};

struct pinned {
	struct pinned_group *groups; /* owned, in the order of their folders */
	size_t nr_groups;
};

/*
 * Opens all groups. Nothing pinned is an empty list. A group that cannot be read is in the list too, and
 * it is for the caller to say so: by pinned_check() where it wants all of them, or by pinned_refuse().
 */
int pinned_open(struct pinned *ret_pinned, struct failure *failure);

/* Fails with what pinned_refuse() says of the first group that cannot be read, if there is one. */
int pinned_check(const struct pinned *pinned, struct failure *failure);

/* Why this group cannot be read, and what to do. Returns its err. */
int pinned_refuse(const struct pinned_group *group, struct failure *failure);
void pinned_done(struct pinned *pinned);

/*
 * The one group that matches spec, its attach finished or not. EXIT_NOTHING when there is none, EXIT_USAGE
 * with the list when there are several; what pinned_refuse() says when it cannot be read, or when none
 * matches and one that cannot be read might. inventory tells which process holds what, for a spec with a pid.
 */
int pinned_find(const struct pinned *pinned, const struct group_spec *spec,
		const struct inventory *inventory, const struct pinned_group **ret_group,
		struct failure *failure);

/* The live group that a pinned group stands for; NULL if it is gone. Borrowed. */
const struct group *pinned_live(const struct pinned_group *pinned,
				const struct inventory *inventory);

/* A copy of that one; of a group that is gone, what the settings tell. It borrows from inventory. */
void pinned_place(const struct pinned_group *pinned, const struct inventory *inventory,
		  struct group *ret_group);

#endif
