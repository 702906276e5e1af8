/* SPDX-License-Identifier: GPL-2.0-only */
/* The groups that are to be steered and are not: attaching them, and counting them. */
#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/keeper_state.h"
#include "steering/attach.h"
#include "steering/place.h"
#include "steering/scan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Groups that one update attaches. */
#define MAX_ATTACHES 2

/* A group that was pinned and is no more was detached by hand; what the hand wants is done. */
static bool is_released(struct keeper *keeper, const char *folder, const struct group *group)
{
	char name[ADDRESS_TEXT_SIZE], text[256];

	if (!folders_has(&keeper->steered, folder))
		return false;
	group_name(group, name);
	snprintf(text, sizeof(text),
		 "%s: was detached by hand and is left alone; \"socksteer attach\", or SIGHUP to "
		 "this daemon, steers it again",
		 name);
	remark(&keeper->remarks, folder, LOG_PRIORITY_NOTICE, text);
	return true;
}

/* Attaches a live group that nobody steers. A failure is remarked once, and tried again later. */
static void attach_one(struct keeper *keeper, const struct group *group)
{
	struct choice choice;
	struct attach_options options = {
		.policy = POLICY_LEAST_LOADED,
		.choice = &choice,
		.keep_tables = true,
	};
	struct group_spec spec = {
		.has_address = true,
		.family = group->family,
		.port = group->port,
		.netns = group->netns,
	};
	struct failure failure = {};
	struct attach_report report;
	char name[ADDRESS_TEXT_SIZE], about[ADDRESS_TEXT_SIZE + 16], text[512];
	char folder[FOLDER_SIZE];

	group_name(group, name);
	snprintf(about, sizeof(about), "%s in %u", name, group->netns);
	orders_choose(&keeper->orders, group, &choice);
	spec.text = name;
	memcpy(spec.address, group->address, sizeof(spec.address));
	if (group_attach(&spec, &options, &report, &failure)) {
		snprintf(text, sizeof(text), "%s (netns %u): %.400s", name, group->netns,
			 failure.message);
		remark(&keeper->remarks, about, LOG_PRIORITY_WARNING, text);
		return;
	}
	remark(&keeper->remarks, about, LOG_PRIORITY_INFO, "");
	group_folder(group, folder);
	folders_add(&keeper->steered, folder);
	keeper->has_attached = true;
	log_line(LOG_PRIORITY_NOTICE,
		 "%s: steering %zu listeners of %zu workers; %lu connections were already open",
		 name, report.nr_listeners, report.nr_workers, (unsigned long)report.nr_seeded);
	keeper->nr_steered++;
}

/*
 * What "all" takes is what can be taken without further ado. A member that does not show may be one
 * that opened during the scan; an attach looks again.
 */
static bool is_free(const struct group *group)
{
	return !group->prog_type &&
	       (group->reason == REASON_NONE || group->reason == REASON_HIDDEN);
}

static bool wants_attach(struct keeper *keeper, const struct group *group)
{
	char folder[FOLDER_SIZE];
	struct group_maps maps __attribute__((cleanup(group_maps_done))) = GROUP_MAPS_NONE;

	if (!group->id || group->ours || !orders_keep(&keeper->orders, group))
		return false;
	if (!orders_name(&keeper->orders, group) && !is_free(group))
		return false;
	group_folder(group, folder);
	/* A whole folder is refresh_all()'s business, also when its program was replaced. */
	return group_maps_open(folder, &maps) == -ENOENT && !is_released(keeper, folder, group);
}

void keeper_attach_missing(struct keeper *keeper, const struct inventory *inventory)
{
	size_t i, nr_attached = 0;

	keeper->has_more = false;
	for (i = 0; i < inventory->nr_groups; i++) {
		size_t index = (keeper->attach_next + i) % inventory->nr_groups;

		if (!wants_attach(keeper, &inventory->groups[index]))
			continue;
		if (nr_attached++ == MAX_ATTACHES) {
			keeper->attach_next = index;
			keeper->has_more = true;
			return;
		}
		attach_one(keeper, &inventory->groups[index]);
	}
}

/* Listens, is to be steered, and is not: left to the kernel's hash against the will of whom it serves. */
static bool is_missed(struct keeper *keeper, const struct group *group)
{
	struct group_maps maps __attribute__((cleanup(group_maps_done))) = GROUP_MAPS_NONE;
	char folder[FOLDER_SIZE];

	if (wants_attach(keeper, group))
		return group->reason != REASON_ONE_LISTENER;
	if (!group->id || group->ours || !orders_keep(&keeper->orders, group))
		return false;
	/* What is pinned was steered until another program came. */
	group_folder(group, folder);
	return group_maps_open(folder, &maps) != -ENOENT;
}

int keeper_count(struct keeper *keeper, size_t *ret_nr_steered, size_t *ret_nr_missed,
		 struct failure *failure)
{
	struct inventory inventory CLEANUP(inventory_done) = {};
	size_t nr_steered = 0, nr_missed = 0, i;
	int err;

	err = inventory_scan_with(keeper->inspector, &inventory, failure);
	if (err)
		return err;
	for (i = 0; i < inventory.nr_groups; i++) {
		const struct group *group = &inventory.groups[i];

		nr_steered += group->ours && orders_keep(&keeper->orders, group);
		nr_missed += is_missed(keeper, group);
	}
	*ret_nr_steered = nr_steered;
	*ret_nr_missed = nr_missed;
	return 0;
}
