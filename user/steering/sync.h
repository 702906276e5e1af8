/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Making the slots of a steered group equal to its real listeners: the missing are put in, the gone
 * lose their rows, and a listener that changed hands is charged to its new worker.
 */
#ifndef SOCKSTEER_STEERING_SYNC_H
#define SOCKSTEER_STEERING_SYNC_H

#include "base/failure.h"
#include "kernel/group_maps.h"
#include "steering/roster.h"

struct sync_report {
	size_t nr_added;
	size_t nr_removed;
};

/*
 * -ESTALE, with a message, when a listener vanished meanwhile: scan again and repeat. Other errors
 * name the listener that cannot be put. What was done so far stays done.
 */
int group_sync(const struct group *group, const struct group_maps *maps, struct roster *roster,
	       struct sync_report *ret_report, struct failure *failure);

/* Takes every listener out of its slot and frees its rows. Whatever fails, goes on. First error. */
int group_clear(const struct group_maps *maps, struct roster *roster);

#endif
