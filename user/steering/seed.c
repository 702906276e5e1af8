/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/seed.h"
#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

static bool find_row(const struct roster *roster, uint64_t cookie, uint32_t *ret_row)
{
	for (*ret_row = 0; *ret_row < MAX_LISTENERS; (*ret_row)++)
		if (roster->listeners[*ret_row].cookie == cookie)
			return true;
	return false;
}

static int add_holder(struct auditor *auditor, uint64_t id, uint32_t number,
		      const struct conn_owner *owner)
{
	struct audit_holder holder = { .id = id, .group = number };

	return id ? auditor_add_holder(auditor, &holder, owner) : 0;
}

/* Of several listeners of one worker the first is charged. */
static int add_listener(struct auditor *auditor, const struct listener *listener,
			const struct roster *roster, uint32_t number)
{
	struct conn_owner owner;
	uint32_t row;
	int err;

	if (!find_row(roster, listener->cookie, &row))
		return 0;
	owner = roster_owner(roster, roster->listeners[row].worker, row);
	err = add_holder(auditor, listener->event_loop, number, &owner);
	return err ? err : add_holder(auditor, listener->pid, number, &owner);
}

int seed_prepare(struct auditor *auditor, const struct group *group, const struct roster *roster,
		 uint32_t number)
{
	struct audit_place place = {
		.netns = group->netns,
		.family = group->family,
		.port = group->port,
	};
	size_t i;
	int err;

	memcpy(place.address, group->address, sizeof(place.address));
	err = auditor_add_place(auditor, &place, number);
	for (i = 0; i < group->nr_listeners && !err; i++)
		err = add_listener(auditor, &group->listeners[i], roster, number);
	return err;
}

static void cleanup_auditor(struct auditor **auditor)
{
	auditor_free(*auditor);
}

int group_seed(const struct group *group, const struct roster *roster, uint64_t *ret_nr_seeded,
	       struct failure *failure)
{
	struct auditor *auditor CLEANUP(cleanup_auditor) = NULL;
	struct audit_counts counts;
	int err;

	err = auditor_new(roster->tables, &auditor, failure);
	if (err)
		return err;
	err = seed_prepare(auditor, group, roster, 0);
	if (err)
		return failure_set(failure, EXIT_FAILED, -err,
				   "cannot say whose the open connections are: %s", strerror(-err));
	err = auditor_run(auditor, true, &counts, failure);
	if (!err)
		*ret_nr_seeded = counts.totals.unrecorded + counts.totals.misplaced;
	return err;
}
