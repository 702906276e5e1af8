/* SPDX-License-Identifier: GPL-2.0-only */
#include "daemon/watch.h"
#include "base/cleanup.h"
#include "kernel/pins.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* One group that is looked at. */
struct watched {
	struct group_maps maps; /* only the sample program, owned */
	uint32_t prog_id; /* at the last look */
};

struct watch {
	struct watched *groups; /* owned */
	size_t nr_groups;
	ino_t pins; /* of the pin that makes the tables complete; 0 if there was none */
};

static void forget_groups(struct watch *watch)
{
	size_t i;

	for (i = 0; i < watch->nr_groups; i++)
		group_maps_done(&watch->groups[i].maps);
	free(watch->groups);
	watch->groups = NULL;
	watch->nr_groups = 0;
}

int watch_new(struct watch **ret_watch)
{
	*ret_watch = calloc(1, sizeof(**ret_watch));
	return *ret_watch ? 0 : -ENOMEM;
}

void watch_free(struct watch *watch)
{
	if (watch)
		forget_groups(watch);
	free(watch);
}

static uint32_t current_program(const struct watched *group)
{
	uint32_t prog_id;

	return group_maps_sample(&group->maps, &prog_id) ? 0 : prog_id;
}

int watch_set_groups(struct watch *watch, const struct pinned *pinned)
{
	size_t i;

	forget_groups(watch);
	watch->groups = calloc(pinned->nr_groups + 1, sizeof(*watch->groups));
	if (!watch->groups)
		return -ENOMEM;
	for (i = 0; i < pinned->nr_groups; i++) {
		struct watched *group = &watch->groups[watch->nr_groups];

		if (!pinned->groups[i].whole)
			continue;
		group->maps = GROUP_MAPS_NONE;
		group->maps.sample = fcntl(pinned->groups[i].maps.sample, F_DUPFD_CLOEXEC, 0);
		group->prog_id = current_program(group);
		watch->nr_groups++;
	}
	return 0;
}

/* Inode numbers of a bpffs are not used again. */
static ino_t pins_now(void)
{
	char path[PIN_PATH_SIZE];
	struct stat status;

	if (pin_path(NULL, "layout", path) || stat(path, &status))
		return 0;
	return status.st_ino;
}

void watch_set_pins(struct watch *watch)
{
	watch->pins = pins_now();
}

enum watch_change watch_look(struct watch *watch)
{
	enum watch_change change = WATCH_NOTHING;
	size_t i;

	if (pins_now() != watch->pins)
		return WATCH_PINS;
	for (i = 0; i < watch->nr_groups; i++) {
		struct watched *group = &watch->groups[i];
		uint32_t prog_id = current_program(group);

		if (prog_id != group->prog_id)
			change = WATCH_PROGRAM;
		group->prog_id = prog_id;
	}
	return change;
}
