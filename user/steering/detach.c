/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/cleanup.h"
#include "kernel/features.h"
#include "kernel/pins.h"
#include "kernel/values.h"
#include "steering/attach.h"
#include "steering/clear.h"
#include "steering/pinned.h"
#include "steering/place.h"
#include "steering/scan.h"

#include <errno.h>
#include <string.h>

/* What every command on pinned groups needs. Given back by session_done(). */
struct session {
	int lock;
	struct inventory inventory;
	struct pinned pinned;
};

static void session_done(struct session *session)
{
	pinned_done(&session->pinned);
	inventory_done(&session->inventory);
	cleanup_fd(&session->lock);
}

static int session_begin(struct session *session, enum purpose purpose, struct failure *failure)
{
	int err;

	err = rights_check(purpose, failure);
	if (!err)
		err = pins_check(failure);
	if (!err)
		err = pins_lock(&session->lock, failure);
	if (!err)
		err = inventory_scan(&session->inventory, failure);
	if (!err)
		err = pinned_open(&session->pinned, failure);
	return err;
}

static void name_of_settings(const struct settings *settings, char ret_name[ADDRESS_TEXT_SIZE])
{
	struct group group;

	group_of_settings(settings, &group);
	group_name(&group, ret_name);
}

int group_detach(const struct group_spec *spec, char ret_name[ADDRESS_TEXT_SIZE],
		 struct failure *failure)
{
	struct session session CLEANUP(session_done) = { .lock = -1 };
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
		name_of_settings(&group->settings, ret_name);
	return err;
}

int group_detach_all(size_t *ret_nr_groups, struct failure *failure)
{
	struct session session CLEANUP(session_done) = { .lock = -1 };
	int err;

	err = session_begin(&session, PURPOSE_CHANGE, failure);
	if (err)
		return err;
	*ret_nr_groups = session.pinned.nr_groups;
	return clear_everything(&session.inventory, failure);
}

int group_set_policy(const struct group_spec *spec, enum policy policy,
		     char ret_name[ADDRESS_TEXT_SIZE], struct failure *failure)
{
	struct session session CLEANUP(session_done) = { .lock = -1 };
	const struct pinned_group *group = NULL;
	const struct group *live;
	struct settings settings;
	int err;

	err = session_begin(&session, PURPOSE_LOOK, failure);
	if (!err)
		err = pinned_find(&session.pinned, spec, &session.inventory, &group, failure);
	if (err)
		return err;
	settings = group->settings;
	name_of_settings(&settings, ret_name);
	live = pinned_live(group, &session.inventory);
	if (!live || !live->ours)
		return failure_set(
			failure, EXIT_NOTHING, ENOENT,
			"%s is not steered at the moment, its program is no longer "
			"attached: \"socksteer attach\" steers it again, and takes --policy",
			ret_name);
	settings.policy = policy;
	err = value_write(group->maps.settings, 0, &settings);
	return err ? failure_set(failure, EXIT_FAILED, -err, "cannot switch the policy of %s: %s",
				 ret_name, strerror(-err)) :
		     0;
}
