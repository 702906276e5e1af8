/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/seed.h"
#include "base/cleanup.h"
#include "kernel/iterate.h"

#include <errno.h>
#include <string.h>

static bool find_row(const struct roster *roster, uint64_t cookie, uint32_t *ret_row)
{
	for (*ret_row = 0; *ret_row < MAX_LISTENERS; (*ret_row)++)
		if (roster->listeners[*ret_row].cookie == cookie)
			return true;
	return false;
}

/* Two keys at most for each listener: its event loop, and its worker's process. */
static size_t fill_owners(const struct group *group, const struct roster *roster,
			  struct seed_owner *owners)
{
	size_t used = 0, i;
	uint32_t row;

	for (i = 0; i < group->nr_listeners; i++) {
		const struct listener *listener = &group->listeners[i];
		struct conn_owner owner;

		if (!find_row(roster, listener->cookie, &row))
			continue;
		owner = roster_owner(roster, roster->listeners[row].worker, row);
		if (listener->event_loop)
			owners[used++] = (struct seed_owner){ listener->event_loop, owner };
		owners[used++] = (struct seed_owner){ listener->pid, owner };
	}
	return used;
}

static struct seed_filter filter_of(const struct group *group)
{
	static const uint8_t any[16];
	struct seed_filter filter = {
		.netns = group->netns,
		.family = group->family,
		.port = group->port,
		.any_address = !memcmp(group->address, any, sizeof(any)),
	};

	memcpy(filter.address, group->address, sizeof(filter.address));
	return filter;
}

int group_seed(const struct group *group, const struct roster *roster, uint64_t *ret_nr_seeded,
	       struct failure *failure)
{
	struct seed_owner *owners CLEANUP(cleanup_free) =
		calloc(2 * group->nr_listeners, sizeof(*owners));
	struct seed_filter filter = filter_of(group);

	if (!owners)
		return failure_set(failure, EXIT_FAILED, ENOMEM, "out of memory");
	return seed_connections(roster->tables, &filter, owners, fill_owners(group, roster, owners),
				ret_nr_seeded, failure);
}
