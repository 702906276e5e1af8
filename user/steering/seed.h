/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Charging connections that no record charges yet, or that sit with another worker than the one they
 * are charged to. A connection sits in the same event loop as its listener; one that no event loop
 * watches belongs to the process that holds it.
 */
#ifndef SOCKSTEER_STEERING_SEED_H
#define SOCKSTEER_STEERING_SEED_H

#include "base/failure.h"
#include "kernel/auditor.h"
#include "steering/inventory.h"
#include "steering/roster.h"
#include <stdint.h>

/*
 * Tells an auditor which connections are the group's, and who holds them, by the rows that the roster
 * has for its listeners. number is the auditor's for the group.
 */
int seed_prepare(struct auditor *auditor, const struct group *group, const struct roster *roster,
		 uint32_t number);

/* One pass over the group's connections. May be repeated. *ret_nr_seeded: how many were charged. */
int group_seed(const struct group *group, const struct roster *roster, uint64_t *ret_nr_seeded,
	       struct failure *failure);

#endif
