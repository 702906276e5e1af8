/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/cleanup.h"
#include "steering/attach.h"
#include "steering/clear.h"
#include "steering/place.h"
#include "steering/session.h"

#include <errno.h>

int group_detach(const struct group_spec *spec, char ret_name[ADDRESS_TEXT_SIZE],
		 struct failure *failure)
{
	struct session session CLEANUP(session_done) = SESSION_NONE;
	struct tables tables __attribute__((cleanup(tables_done))) = TABLES_NONE;
	const struct pinned_group *group;
	int err;

	err = session_begin(&session, PURPOSE_CHANGE, failure);
	if (!err)
		err = pinned_find(&session.pinned, spec, &session.inventory, &group, failure);
	if (err)
		return err;
	err = tables_open(&tables, failure);
	/* Without whole tables there are no rows to free. */
	if (err && (err != -ENOENT || failure->code != EXIT_DONE))
		return err;
	err = clear_group(group->folder, &session.inventory, &tables, failure);
	tables_done(&tables);
	clear_unused_tables();
	if (!err)
		settings_name(&group->settings, ret_name);
	return err;
}

int group_detach_all(size_t *ret_nr_groups, struct failure *failure)
{
	struct session session CLEANUP(session_done) = SESSION_NONE;
	int err;

	err = session_begin(&session, PURPOSE_CHANGE, failure);
	if (err)
		return err;
	*ret_nr_groups = session.pinned.nr_groups;
	return clear_everything(&session.inventory, failure);
}
