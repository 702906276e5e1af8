/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/clear.h"
#include "base/cleanup.h"
#include "kernel/group_maps.h"
#include "kernel/pins.h"
#include "kernel/values.h"
#include "steering/place.h"
#include "steering/program.h"
#include "steering/rescue.h"
#include "steering/roster.h"
#include "steering/sync.h"

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>

bool group_is_orphan(const struct group *group)
{
	return group->prog_type == BPF_PROG_TYPE_SK_REUSEPORT && group->prog_id && !group->ours &&
	       !strncmp(group->prog_name, "steer", sizeof(group->prog_name));
}

static void clear_slots(int listeners)
{
	uint32_t slot;

	for (slot = 0; slot < MAX_SLOTS; slot++)
		if (slot_clear(listeners, slot))
			return;
}

void clear_orphan(const struct group *group)
{
	int listeners CLEANUP(cleanup_fd) = -1;

	if (!group_maps_find_listeners(group->prog_id, &listeners))
		clear_slots(listeners);
}

/* Rows can be freed when the maps are of this layout; slots can be emptied in any case. */
static void clear_maps(const char *folder, const struct tables *tables)
{
	struct group_maps maps __attribute__((cleanup(group_maps_done))) = GROUP_MAPS_NONE;
	struct roster *roster CLEANUP(cleanup_free) = NULL;

	struct failure ignored = {};

	group_maps_open_rest(folder, &maps);
	/* After this nothing tells any more that a killed rescue left a listener shut. */
	if (maps.members >= 0 && maps.settings >= 0 && tables->layout >= 0 &&
	    rescue_finish_pending(&maps, tables, &ignored))
		rescue_forget_pending(&maps, tables);
	if (maps.members >= 0 && maps.settings >= 0 && tables->layout >= 0 &&
	    !roster_read(tables, &roster) && !group_clear(&maps, roster))
		return;
	if (maps.listeners >= 0)
		clear_slots(maps.listeners);
}

int clear_group(const char *folder, const struct inventory *inventory, const struct tables *tables,
		struct failure *failure)
{
	const struct group *group = group_in_folder(folder, inventory);
	int err = 0, pins_err;

	if (group && group->ours)
		err = group_take_program(group, failure);
	clear_maps(folder, tables);
	pins_err = pins_remove(folder);
	if (!err && pins_err)
		err = failure_set(failure, EXIT_FAILED, -pins_err,
				  "cannot remove the pins below " PINS_PATH "/%s: %s", folder,
				  strerror(-pins_err));
	return err;
}

int clear_everything(const struct inventory *inventory, struct failure *failure)
{
	const struct tables none = TABLES_NONE;
	char **folders = NULL;
	size_t nr_folders = 0, i;
	int first, err;

	/* After this nothing tells any more that a killed rescue left a listener shut. */
	rescue_finish_all();
	first = pins_list(&folders, &nr_folders);
	if (first)
		return pins_refuse(NULL, first, failure);
	for (i = 0; i < nr_folders; i++) {
		err = clear_group(folders[i], inventory, &none, failure);
		first = first ? first : err;
	}
	pins_list_free(folders, nr_folders);
	err = pins_remove(NULL);
	if (!first && err)
		first = failure_set(failure, EXIT_FAILED, -err,
				    "cannot remove the pins below " PINS_PATH ": %s",
				    strerror(-err));
	return first;
}

void clear_unused_tables(void)
{
	char **folders = NULL;
	size_t nr_folders = 0;

	if (pins_list(&folders, &nr_folders))
		return;
	if (!nr_folders)
		pins_remove(NULL);
	pins_list_free(folders, nr_folders);
}
