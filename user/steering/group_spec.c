/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/text.h"
#include "steering/inventory.h"

#include <errno.h>
#include <string.h>

int group_spec_parse(const char *text, struct group_spec *ret_spec)
{
	const char *colon = strrchr(text, ':');
	const char *port = colon ? colon + 1 : text;
	struct group_spec spec = { .text = text };
	uint64_t value;

	if (text_to_u64(port, 1, 65535, &value))
		return -EINVAL;
	spec.port = (uint32_t)value;
	spec.has_address = colon && colon != text;
	if (spec.has_address &&
	    text_to_address(text, (size_t)(colon - text), &spec.family, spec.address))
		return -EINVAL;
	*ret_spec = spec;
	return 0;
}

static bool group_has_holder(const struct group *group, uint32_t pid)
{
	size_t i, j;

	for (i = 0; i < group->nr_listeners; i++)
		for (j = 0; j < group->listeners[i].nr_holders; j++)
			if (group->listeners[i].holders[j].pid == pid)
				return true;
	return false;
}

bool group_spec_matches(const struct group_spec *spec, const struct group *group)
{
	if (spec->port != group->port)
		return false;
	if (spec->has_address &&
	    (spec->family != group->family ||
	     memcmp(spec->address, group->address, sizeof(spec->address)) != 0))
		return false;
	if (spec->netns && spec->netns != group->netns)
		return false;
	return !spec->pid || group_has_holder(group, spec->pid);
}

bool group_spec_is_same(const struct group_spec *a, const struct group_spec *b)
{
	return a->port == b->port && a->netns == b->netns && a->pid == b->pid &&
	       a->has_address == b->has_address && a->family == b->family &&
	       !memcmp(a->address, b->address, sizeof(a->address));
}
