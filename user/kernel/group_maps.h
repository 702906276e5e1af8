/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What one group has for itself: its instance of steer and its maps, pinned in one folder.
 */
#ifndef SOCKSTEER_KERNEL_GROUP_MAPS_H
#define SOCKSTEER_KERNEL_GROUP_MAPS_H

#include "base/failure.h"
#include "kernel/features.h"
#include "kernel/tables.h"
#include "socksteer/types.h"
#include <stdint.h>

/* Descriptors, owned; -1 where there is none. */
struct group_maps {
	int listeners;
	int members;
	int counters;
	int settings;
	int rotation;
	int snapshot;
	int alarms;
	int program; /* steer */
	int sample; /* the program that group_maps_sample() runs */
	int survey; /* the one of group_maps_survey() */
	uint32_t program_id;
};

#define GROUP_MAPS_NONE                                                                            \
	(struct group_maps)                                                                        \
	{                                                                                          \
		-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0                                          \
	}

/*
 * Loads steer on the shared tables and pins it with its maps. On failure nothing stays pinned.
 * steer's pin is made last: a folder that has it is whole.
 */
int group_maps_create(const struct features *features, const struct tables *tables,
		      const char *folder, struct group_maps *ret_maps, struct failure *failure);

/*
 * Opens the pins of a folder. -ENOENT if the folder is not whole, also because its pins have another
 * layout; else -errno of a pin that cannot be opened, which says nothing of what is there.
 */
int group_maps_open(const char *folder, struct group_maps *ret_maps);

/* The same, but *ret_maps has what could be opened in any case; the others are -1. */
int group_maps_open_rest(const char *folder, struct group_maps *ret_maps);

/*
 * Finds the sockarray of a loaded steer program by the program's id, for programs that lost their
 * pins. Needs CAP_SYS_ADMIN. The caller owns *ret_listeners.
 */
int group_maps_find_listeners(uint32_t program_id, int *ret_listeners);

/* Any loaded program by its id. The caller owns *ret_program. Needs CAP_SYS_ADMIN. */
int program_open(uint32_t id, int *ret_program);

/*
 * The id of the program that the group has right now, in microseconds and without a scan;
 * SAMPLE_CLASSIC for one without an id, 0 for none, also when no listener is left. -errno.
 */
int group_maps_sample(const struct group_maps *maps, uint32_t *ret_prog_id);

/* Looks at the queues of all listeners, as steer does: *ret_result is enum survey_result. -errno. */
int group_maps_survey(const struct group_maps *maps, uint32_t *ret_result);

void group_maps_done(struct group_maps *maps);

#endif
