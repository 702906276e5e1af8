/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/pinned.h"
#include "base/cleanup.h"
#include "kernel/pins.h"
#include "kernel/values.h"
#include "steering/place.h"

#include <errno.h>
#include <string.h>

static void read_group(struct pinned_group *group)
{
	int err = group_maps_open_rest(group->folder, &group->maps), settings_err = 0;

	if (group->maps.settings >= 0)
		settings_err = value_read(group->maps.settings, 0, &group->settings);
	/* Half done, or about to be removed. */
	group->err = err == -ENOENT ? settings_err : err;
	group->whole = !err && !settings_err && group->settings.attached_ns;
	group->known = group->settings.port != 0;
}

static int pinned_add(struct pinned *pinned, const char *folder)
{
	struct pinned_group *groups, *group;

	groups = reallocarray(pinned->groups, pinned->nr_groups + 1, sizeof(*groups));
	if (!groups)
		return -ENOMEM;
	pinned->groups = groups;
	group = &groups[pinned->nr_groups];
	*group = (struct pinned_group){ .folder = strdup(folder), .maps = GROUP_MAPS_NONE };
	if (!group->folder)
		return -ENOMEM;
	pinned->nr_groups++;
	read_group(group);
	return 0;
}

int pinned_open(struct pinned *ret_pinned, struct failure *failure)
{
	struct pinned pinned = {};
	char **folders = NULL;
	size_t nr_folders = 0, i;
	int err;

	err = pins_list(&folders, &nr_folders);
	for (i = 0; i < nr_folders && !err; i++)
		err = pinned_add(&pinned, folders[i]);
	pins_list_free(folders, nr_folders);
	if (err) {
		pinned_done(&pinned);
		return pins_refuse(NULL, err, failure);
	}
	*ret_pinned = pinned;
	return 0;
}

int pinned_refuse(const struct pinned_group *group, struct failure *failure)
{
	return pins_refuse(group->folder, group->err, failure);
}

int pinned_check(const struct pinned *pinned, struct failure *failure)
{
	size_t i;

	for (i = 0; i < pinned->nr_groups; i++)
		if (pinned->groups[i].err)
			return pinned_refuse(&pinned->groups[i], failure);
	return 0;
}

void pinned_done(struct pinned *pinned)
{
	size_t i;

	for (i = 0; i < pinned->nr_groups; i++) {
		free(pinned->groups[i].folder);
		group_maps_done(&pinned->groups[i].maps);
	}
	free(pinned->groups);
	*pinned = (struct pinned){};
}

const struct group *pinned_live(const struct pinned_group *pinned,
				const struct inventory *inventory)
{
	return group_in_folder(pinned->folder, inventory);
}

void pinned_place(const struct pinned_group *pinned, const struct inventory *inventory,
		  struct group *ret_group)
{
	const struct group *live = pinned_live(pinned, inventory);

	if (live)
		*ret_group = *live;
	else
		group_of_settings(&pinned->settings, ret_group);
}

static bool pinned_matches(const struct pinned_group *pinned, const struct group_spec *spec,
			   const struct inventory *inventory)
{
	struct group group;

	if (!pinned->known)
		return false;
	pinned_place(pinned, inventory, &group);
	return group_spec_matches(spec, &group);
}

static int several_match(const struct pinned *pinned, const struct group_spec *spec,
			 const struct inventory *inventory, struct failure *failure)
{
	char name[ADDRESS_TEXT_SIZE];
	struct group group;
	size_t i;

	failure_set(failure, EXIT_USAGE, EINVAL,
		    "%s matches several steered groups; name one by its address, --netns or --pid:",
		    spec->text);
	for (i = 0; i < pinned->nr_groups; i++) {
		if (!pinned_matches(&pinned->groups[i], spec, inventory))
			continue;
		group_of_settings(&pinned->groups[i].settings, &group);
		group_name(&group, name);
		failure_add(failure, "\n  %s --netns %u", name, group.netns);
	}
	return -EINVAL;
}

/* What cannot be read may be the one that is meant. */
static int none_matches(const struct pinned *pinned, const struct group_spec *spec,
			struct failure *failure)
{
	int err = pinned_check(pinned, failure);

	if (err)
		return err;
	return failure_set(failure, EXIT_NOTHING, ENOENT,
			   "%s is not steered: \"socksteer list\" shows every group", spec->text);
}

int pinned_find(const struct pinned *pinned, const struct group_spec *spec,
		const struct inventory *inventory, const struct pinned_group **ret_group,
		struct failure *failure)
{
	const struct pinned_group *found = NULL;
	size_t i, count = 0;

	for (i = 0; i < pinned->nr_groups; i++) {
		if (!pinned_matches(&pinned->groups[i], spec, inventory))
			continue;
		found = &pinned->groups[i];
		count++;
	}
	if (!count)
		return none_matches(pinned, spec, failure);
	if (count > 1)
		return several_match(pinned, spec, inventory, failure);
	if (found->err)
		return pinned_refuse(found, failure);
	*ret_group = found;
	return 0;
}
