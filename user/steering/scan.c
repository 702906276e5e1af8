/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/scan.h"
#include "base/cleanup.h"
#include "kernel/features.h"
#include "kernel/group_maps.h"
#include "kernel/iterate.h"
#include "steering/place.h"

#include <errno.h>
#include <string.h>

/* Ours is what is pinned in the group's folder, not what merely has our name. */
static void mark_ours(struct group *group)
{
	struct group_maps maps __attribute__((cleanup(group_maps_done))) = GROUP_MAPS_NONE;
	char folder[FOLDER_SIZE];

	if (!group->prog_id)
		return;
	group_folder(group, folder);
	group_maps_open_rest(folder, &maps);
	group->ours = maps.program_id == group->prog_id;
}

int inventory_scan_with(struct inspector *inspector, struct inventory *ret_inventory,
			struct failure *failure)
{
	struct inspect_row *rows CLEANUP(cleanup_free) = NULL;
	size_t nr_rows, i;
	int err;

	err = inspector_read(inspector, &rows, &nr_rows, failure);
	if (err)
		return err;
	err = inventory_build(rows, nr_rows, ret_inventory);
	if (err)
		return failure_set(failure, EXIT_FAILED, -err, "cannot list listeners: %s",
				   strerror(-err));
	for (i = 0; i < ret_inventory->nr_groups; i++)
		mark_ours(&ret_inventory->groups[i]);
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
