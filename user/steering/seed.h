/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Charging connections that were open before their group was steered. A connection sits in the same
 * event loop as its listener; one that no event loop watches belongs to the process that holds it.
 */
#ifndef SOCKSTEER_STEERING_SEED_H
#define SOCKSTEER_STEERING_SEED_H

#include "base/failure.h"
#include "steering/inventory.h"
#include "steering/roster.h"
#include <stdint.h>

/*
 * Charges every accepted connection of the group that is not charged yet, to the rows that the
 * roster has for the group's listeners. May be repeated. *ret_nr_seeded: how many were charged.
 */
int group_seed(const struct group *group, const struct roster *roster, uint64_t *ret_nr_seeded,
	       struct failure *failure);

#endif
