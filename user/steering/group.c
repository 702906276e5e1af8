/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/inventory.h"

#include <stdio.h>

/* True if an earlier listener of the group already counted for this one. */
static bool is_counted(const struct group *group, size_t index)
{
	const struct listener *listener = &group->listeners[index];
	size_t i;

	for (i = 0; i < index; i++) {
		const struct listener *other = &group->listeners[i];

		if (other->pid == listener->pid && other->event_loop == listener->event_loop)
			return true;
	}
	return false;
}

size_t group_nr_workers(const struct group *group)
{
	size_t count = 0, i;

	for (i = 0; i < group->nr_listeners; i++)
		count += !is_counted(group, i);
	return count;
}

static bool is_earlier_holder(const struct group *group, size_t listener, size_t holder)
{
	uint32_t pid = group->listeners[listener].holders[holder].pid;
	size_t i, j;

	for (i = 0; i <= listener; i++)
		for (j = 0; j < (i < listener ? group->listeners[i].nr_holders : holder); j++)
			if (group->listeners[i].holders[j].pid == pid)
				return true;
	return false;
}

size_t group_nr_processes(const struct group *group)
{
	size_t count = 0, i, j;

	for (i = 0; i < group->nr_listeners; i++)
		for (j = 0; j < group->listeners[i].nr_holders; j++)
			count += !is_earlier_holder(group, i, j);
	return count;
}

void group_reason_text(const struct group *group, char *ret_text, size_t size)
{
	switch (group->reason) {
	case REASON_NO_REUSEPORT:
		snprintf(ret_text, size, "not a reuseport listener");
		return;
	case REASON_MPTCP:
		snprintf(ret_text, size, "MPTCP listener: the kernel cannot steer those");
		return;
	case REASON_ONE_LISTENER:
		snprintf(ret_text, size, "one listener, %zu process%s: nothing to steer",
			 group_nr_processes(group), group_nr_processes(group) == 1 ? "" : "es");
		return;
	case REASON_HIDDEN:
		snprintf(ret_text, size, "%zu of %u listeners found: the others have no descriptor",
			 group->nr_listeners, group->size);
		return;
	case REASON_NONE:
		break;
	}
	ret_text[0] = '\0';
}
