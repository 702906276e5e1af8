/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/scan.h"
#include "base/cleanup.h"
#include "kernel/features.h"
#include "kernel/group_maps.h"
#include "kernel/iterate.h"
#include "kernel/pins.h"
#include "steering/place.h"

#include <errno.h>
#include <string.h>

/*
 * Ours is what is pinned in the group's folder, not what merely has our name; nor is what another user
 * has pinned.
 */
static int mark_ours(struct group *group, struct failure *failure)
{
	struct group_maps maps __attribute__((cleanup(group_maps_done))) = GROUP_MAPS_NONE;
	char folder[FOLDER_SIZE];
	int err;

	if (!group->prog_id)
		return 0;
	group_folder(group, folder);
	err = group_maps_open_rest(folder, &maps);
	if (err && err != -ENOENT && err != -EACCES && err != -EPERM)
		return pins_refuse(folder, err, failure);
	group->ours = maps.program_id == group->prog_id;
	return 0;
}

int inventory_scan_with(struct inspector *inspector, struct inventory *ret_inventory,
			struct failure *failure)
{
	struct inspect_row *rows CLEANUP(cleanup_free) = NULL;
	struct inventory inventory CLEANUP(inventory_done) = {};
	size_t nr_rows, i;
	int err;

	err = inspector_read(inspector, &rows, &nr_rows, failure);
	if (err)
		return err;
	err = inventory_build(rows, nr_rows, &inventory);
	if (err)
		return failure_set(failure, EXIT_FAILED, -err, "cannot list listeners: %s",
				   strerror(-err));
	for (i = 0; i < inventory.nr_groups && !err; i++)
		err = mark_ours(&inventory.groups[i], failure);
	if (err)
		return err;
	*ret_inventory = inventory;
	inventory = (struct inventory){};
	return 0;
}

int inventory_scan(struct inventory *ret_inventory, struct failure *failure)
{
	struct inspector *inspector = NULL;
	int err;

	err = rights_check(PURPOSE_LOOK, failure);
	if (!err)
		err = inspector_new(&inspector, failure);
	if (!err)
		err = inventory_scan_with(inspector, ret_inventory, failure);
	inspector_free(inspector);
	return err;
}
