/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/rescue.h"

static bool is_in_window(const struct member *member, uint64_t now_ns)
{
	return member->rescue_window_ns && now_ns - member->rescue_window_ns < RESCUE_WINDOW_NS;
}

bool rescue_is_due(const struct member *member, uint64_t now_ns)
{
	return !is_in_window(member, now_ns) || member->rescues_in_window < MAX_RESCUES_IN_WINDOW;
}

void rescue_note(struct member *member, uint64_t now_ns)
{
	if (!is_in_window(member, now_ns)) {
		member->rescue_window_ns = now_ns;
		member->rescues_in_window = 0;
	}
	member->rescues_in_window++;
	member->nr_rescues++;
}
