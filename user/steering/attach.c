/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/attach.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "kernel/features.h"
#include "kernel/group_maps.h"
#include "kernel/pins.h"
#include "kernel/values.h"
#include "steering/clear.h"
#include "steering/names.h"
#include "steering/pinned.h"
#include "steering/place.h"
#include "steering/program.h"
#include "steering/rescue.h"
#include "steering/roster.h"
#include "steering/scan.h"
#include "steering/seed.h"
#include "steering/sync.h"

#include <errno.h>
#include <string.h>

/* The group may change while it is attached; each change costs a new scan. */
#define MAX_TRIES 5

/* One attach from beginning to end. Everything here is given back by attach_done(). */
struct attach {
	const struct group_spec *spec;
	const struct attach_options *options;
	struct failure *failure;
	struct features features;
	int lock;
	struct inventory inventory;
	const struct group *group; /* in inventory */
	char folder[FOLDER_SIZE];
	char name[ADDRESS_TEXT_SIZE];
	struct tables tables;
	struct group_maps maps;
	struct roster *roster;
	bool created; /* this attach made the folder, so a failure has to clear it */
	int replaced; /* another owner's program that --force replaces, or -1; owned */
};

static void attach_done(struct attach *attach)
{
	free(attach->roster);
	group_maps_done(&attach->maps);
	tables_done(&attach->tables);
	inventory_done(&attach->inventory);
	cleanup_fd(&attach->replaced);
	cleanup_fd(&attach->lock);
}

static int several_match(const struct attach *attach)
{
	char name[ADDRESS_TEXT_SIZE];
	size_t i;

	failure_set(attach->failure, EXIT_USAGE, EINVAL,
		    "%s matches several groups; name one by its address, --netns or --pid:",
		    attach->spec->text);
	for (i = 0; i < attach->inventory.nr_groups; i++) {
		const struct group *group = &attach->inventory.groups[i];

		if (!group_spec_matches(attach->spec, group))
			continue;
		group_name(group, name);
		failure_add(attach->failure, "\n  %s --netns %u", name, group->netns);
	}
	return -EINVAL;
}

static int find_group(struct attach *attach)
{
	size_t i, count = 0;

	for (i = 0; i < attach->inventory.nr_groups; i++) {
		if (!group_spec_matches(attach->spec, &attach->inventory.groups[i]))
			continue;
		attach->group = &attach->inventory.groups[i];
		count++;
	}
	if (!count)
		return failure_set(attach->failure, EXIT_NOTHING, ENOENT,
				   "nothing listens on %s%s: \"socksteer list\" shows every group",
				   attach->spec->text,
				   attach->spec->pid || attach->spec->netns ?
					   " in that process or network namespace" :
					   "");
	if (count > 1)
		return several_match(attach);
	group_folder(attach->group, attach->folder);
	group_name(attach->group, attach->name);
	return 0;
}

static int check_reason(const struct attach *attach)
{
	char reason[128];

	if (attach->group->reason == REASON_NONE)
		return 0;
	group_reason_text(attach->group, reason, sizeof(reason));
	return failure_set(attach->failure, EXIT_NOTHING, ENOENT,
			   "%s cannot be steered: %s; it was left as it was", attach->name, reason);
}

static int scan_once(struct attach *attach)
{
	int err;

	inventory_done(&attach->inventory);
	err = inventory_scan(&attach->inventory, attach->failure);
	return err ? err : find_group(attach);
}

/*
 * Ends the last scan, if any, and finds the group anew. A listener that opens while a scan runs is
 * counted by the kernel and not found, so only what is hidden again and again is hidden.
 */
static int rescan(struct attach *attach)
{
	int err, tries;

	for (tries = 0; tries < MAX_TRIES; tries++) {
		err = scan_once(attach);
		if (err || attach->group->reason != REASON_HIDDEN)
			break;
	}
	return err ? err : check_reason(attach);
}

/* A program of somebody else stays unless the user insists. */
static int check_program(const struct attach *attach)
{
	const struct group *group = attach->group;
	char name[4 * COMM_SIZE + 1];

	if (!group->prog_type || group->ours || attach->options->force)
		return 0;
	if (group_is_orphan(group))
		return failure_set(
			attach->failure, EXIT_FAILED, EBUSY,
			"%s is steered by a socksteer whose pins are not below " PINS_PATH
			": use the bpffs where they are, or --force to replace it",
			attach->name);
	text_escape(group->prog_name, COMM_SIZE, name, sizeof(name));
	if (!group->prog_id)
		return failure_set(attach->failure, EXIT_FAILED, EBUSY,
				   "%s has a classic BPF program of another owner attached: "
				   "--force replaces it",
				   attach->name);
	return failure_set(attach->failure, EXIT_FAILED, EBUSY,
			   "%s has a program of another owner attached (\"%s\", id %u): --force "
			   "replaces it",
			   attach->name, name, group->prog_id);
}

static int open_tables(struct attach *attach)
{
	int err = tables_open(&attach->tables, attach->failure);

	if (err != -ENOENT)
		return err;
	/* Not complete, so no group is: clear what a killed attempt may have left. */
	err = clear_everything(&attach->inventory, attach->failure);
	return err ? err : tables_create(&attach->tables, attach->failure);
}

static int maps_failed(const struct attach *attach, int err)
{
	return failure_set(attach->failure, EXIT_FAILED, -err,
			   "cannot use the maps below " PINS_PATH "/%s: %s", attach->folder,
			   strerror(-err));
}

static int read_roster(struct attach *attach)
{
	int err = roster_read(&attach->tables, &attach->roster);

	return err ? maps_failed(attach, err) : 0;
}

static int sync_until_stable(struct attach *attach, struct sync_report *report)
{
	int err, tries;

	for (tries = 0; tries < MAX_TRIES; tries++) {
		err = group_sync(attach->group, &attach->maps, attach->roster, report,
				 attach->failure);
		if (err != -ESTALE)
			return err;
		err = rescan(attach);
		if (err)
			return err;
	}
	return -ESTALE;
}

static int attach_program(const struct attach *attach)
{
	int err = group_put_program(attach->group, attach->maps.program, attach->failure);

	if (err != -ESTALE)
		return err;
	return failure_set(
		attach->failure, EXIT_FAILED, ESTALE,
		"all listeners of %s vanished meanwhile: try again when the server is up",
		attach->name);
}

/* From here on the group counts as steered. */
static int mark_attached(const struct attach *attach)
{
	struct settings settings;
	int err = value_read(attach->maps.settings, 0, &settings);

	settings.attached_ns = clock_now_ns();
	if (!err)
		err = value_write(attach->maps.settings, 0, &settings);
	return err ? maps_failed(attach, err) : 0;
}

static int seed(const struct attach *attach, struct attach_report *report)
{
	uint64_t nr_seeded;
	int err = group_seed(attach->group, attach->roster, &nr_seeded, attach->failure);

	if (!err)
		report->nr_seeded += nr_seeded;
	return err;
}

/*
 * Members that joined meanwhile would starve, so the group is looked at again until it is whole; and
 * what they hold already is charged to them.
 */
static int settle(struct attach *attach, struct attach_report *report)
{
	struct sync_report sync = {};
	int err, tries;

	for (tries = 0; tries < MAX_TRIES; tries++) {
		err = rescan(attach);
		if (!err)
			err = sync_until_stable(attach, &sync);
		if (err || !sync.nr_added)
			return err;
		err = seed(attach, report);
		if (err)
			return err;
	}
	return failure_set(attach->failure, EXIT_FAILED, EAGAIN,
			   "%s keeps getting new listeners: try again when the server is calm",
			   attach->name);
}

static int begin(struct attach *attach)
{
	struct settings settings;
	int err;

	err = group_maps_create(&attach->features, &attach->tables, attach->folder, &attach->maps,
				attach->failure);
	if (err)
		return err;
	attach->created = true;
	settings_init(attach->group, attach->options->policy, &settings);
	if (attach->options->choice)
		choice_apply(attach->options->choice, &settings);
	err = value_write(attach->maps.settings, 0, &settings);
	return err ? maps_failed(attach, err) : read_roster(attach);
}

static int steer_group(struct attach *attach, struct attach_report *report)
{
	struct sync_report sync = {};
	int err;

	err = begin(attach);
	if (!err)
		err = sync_until_stable(attach, &sync);
	if (!err)
		err = seed(attach, report);
	if (!err)
		err = attach_program(attach);
	if (!err)
		err = settle(attach, report);
	return err ? err : mark_attached(attach);
}

/* Already steered: only listeners that came or went since are brought up to date. */
static int refresh_group(struct attach *attach, struct attach_report *report)
{
	struct sync_report sync = {};
	int err = read_roster(attach);

	if (!err)
		err = sync_until_stable(attach, &sync);
	if (!err)
		err = seed(attach, report);
	/* Says what could not be finished before; that something was is no failure. */
	if (!err)
		err = rescue_finish_pending(&attach->maps, &attach->tables, attach->failure);
	if (err == -ESTALE && attach->failure->code == EXIT_DONE)
		err = 0;
	report->already = true;
	report->nr_added = sync.nr_added;
	return err;
}

/* Opens the maps if the group is steered by a finished attach; -ENOENT, and no failure, if it is not. */
static int open_steered(struct attach *attach)
{
	struct settings settings;
	int err;

	if (!attach->group->ours)
		return -ENOENT;
	err = group_maps_open(attach->folder, &attach->maps);
	if (err)
		return err == -ENOENT ? err : pins_refuse(attach->folder, err, attach->failure);
	err = value_read(attach->maps.settings, 0, &settings);
	if (err)
		return maps_failed(attach, err);
	if (settings.attached_ns)
		return 0;
	group_maps_done(&attach->maps);
	return -ENOENT;
}

/* Gives the group the program back that --force took off. A classic one cannot be had again. */
static void put_back(const struct attach *attach, const struct inventory *inventory)
{
	struct failure ignored = {};
	size_t i;

	for (i = 0; i < inventory->nr_groups && attach->replaced >= 0; i++)
		if (group_spec_matches(attach->spec, &inventory->groups[i]) &&
		    !inventory->groups[i].prog_type)
			group_put_program(&inventory->groups[i], attach->replaced, &ignored);
}

/* Leaves the group, and the pins, as they were found. The failure that led here stays as it is. */
static void undo(const struct attach *attach)
{
	struct inventory inventory = {};
	struct failure ignored = {};

	if (attach->lock < 0)
		return;
	if (attach->created && !inventory_scan(&inventory, &ignored)) {
		clear_group(attach->folder, &inventory, &attach->tables, &ignored);
		put_back(attach, &inventory);
	}
	inventory_done(&inventory);
	if (!attach->options->keep_tables)
		clear_unused_tables();
}

static int attach_locked(struct attach *attach, struct attach_report *report)
{
	int err;

	/* First: a listener that a killed rescue left shut is not found by a scan. */
	rescue_finish_all();
	err = rescan(attach);
	if (!err)
		err = check_program(attach);
	if (!err)
		err = open_tables(attach);
	if (err)
		return err;
	err = open_steered(attach);
	if (!err)
		return refresh_group(attach, report);
	if (err != -ENOENT)
		return err;
	err = clear_group(attach->folder, &attach->inventory, &attach->tables, attach->failure);
	if (!err && group_is_orphan(attach->group))
		clear_orphan(attach->group);
	else if (!err && attach->group->prog_id)
		program_open(attach->group->prog_id, &attach->replaced);
	if (!err)
		err = steer_group(attach, report);
	return err;
}

static void report_fill(const struct attach *attach, struct attach_report *report)
{
	memcpy(report->name, attach->name, sizeof(report->name));
	report->nr_listeners = attach->group->nr_listeners;
	report->nr_workers = group_nr_workers(attach->group);
	memcpy(report->signals_missing, attach->features.signals_missing,
	       sizeof(report->signals_missing));
}

int group_attach(const struct group_spec *spec, const struct attach_options *options,
		 struct attach_report *ret_report, struct failure *failure)
{
	struct attach attach CLEANUP(attach_done) = {
		.spec = spec,
		.options = options,
		.failure = failure,
		.lock = -1,
		.replaced = -1,
		.tables = TABLES_NONE,
		.maps = GROUP_MAPS_NONE,
	};
	struct attach_report report = {};
	int err;

	err = features_probe(&attach.features, failure);
	if (!err)
		err = pins_check(failure);
	if (!err)
		err = pins_lock(&attach.lock, failure);
	if (!err)
		err = attach_locked(&attach, &report);
	if (err) {
		undo(&attach);
		return err;
	}
	report_fill(&attach, &report);
	*ret_report = report;
	return 0;
}
