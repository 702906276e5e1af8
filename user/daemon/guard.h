/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * guard: looks at the queues of the steered groups, so that a hang is noticed when no SYN comes; but only
 * while something waits in one of them. It says whom to rescue and does not do it.
 *
 * steer arms a group's alarm with the first SYN after a quiet time and reports EVENT_ARRIVAL; then looks are
 * taken until two in a row find nothing. The first of these two leaves it off, so what arrives from then on is
 * reported, and what arrived before is seen by the second.
 */
#ifndef SOCKSTEER_DAEMON_GUARD_H
#define SOCKSTEER_DAEMON_GUARD_H

#include "steering/pinned.h"
#include <stdint.h>

struct guard;

/*
 * A listener that its group's settings want rescued, and that others could help. member is valid during
 * the call. 1 if it was rescued; 0 if there was nothing to do, or none is due; negative if it could not be
 * helped: then the group is left alone for a while.
 */
typedef int (*guard_handler)(const char *folder, uint32_t slot, const struct member *member,
			     void *argument);

int guard_new(struct guard **ret_guard); /* -ENOMEM */
void guard_free(struct guard *guard);

/*
 * Which groups to look at from now on: takes copies of what it needs. The next look is at all of them.
 * -errno; then it looks at what there was room for.
 */
int guard_set_groups(struct guard *guard, const struct pinned *pinned);

/*
 * One look. The time until the next one, in microseconds; 0 when nothing waits, until an EVENT_ARRIVAL
 * or a change of groups.
 */
uint64_t guard_look(struct guard *guard, guard_handler handler, void *argument);

/* Takes an EVENT_ARRIVAL: its group is looked at from the next look on. */
void guard_note_arrival(struct guard *guard, const struct event *event);

/* After that: the time until the first look. */
uint64_t guard_delay(const struct guard *guard);

#endif
