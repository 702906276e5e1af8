/* SPDX-License-Identifier: GPL-2.0-only */
#include "daemon/keeper.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/folders.h"
#include "daemon/handover.h"
#include "daemon/orders.h"
#include "daemon/remarks.h"
#include "daemon/reports.h"
#include "daemon/watch.h"
#include "kernel/auditor.h"
#include "kernel/iterate.h"
#include "kernel/lock.h"
#include "kernel/pins.h"
#include "kernel/tables.h"
#include "steering/attach.h"
#include "steering/audit.h"
#include "steering/clear.h"
#include "steering/place.h"
#include "steering/refresh.h"
#include "steering/scan.h"

#include <errno.h>
#include <string.h>

/* A scan that raced with a change is repeated at once, this often. */
#define MAX_TRIES 3

/* Groups that one update attaches. */
#define MAX_ATTACHES 2

struct keeper {
	struct orders orders; /* owned */
	bool orders_are_new; /* groups that are steered already have not been told */
	struct inspector *inspector; /* owned */
	struct tables tables; /* owned */
	int lock; /* held for as long as the daemon lives */
	struct auditor *auditor; /* owned; NULL until the first audit */
	struct watch *watch; /* owned */
	struct folders steered; /* owned; groups that were seen pinned */
	bool has_more; /* groups to attach, after the last update */
	bool has_attached; /* one, in the last update */
	size_t attach_next; /* where to go on, in the order of the inventory */
	bool changed; /* listeners joined or left since the last audit */
	uint64_t oldest_join_ns; /* CLOCK_MONOTONIC, of joins since the last update; 0 for none */
	size_t nr_steered;
	struct remarks remarks; /* owned */
};

void keeper_free(struct keeper *keeper)
{
	if (!keeper)
		return;
	auditor_free(keeper->auditor);
	watch_free(keeper->watch);
	orders_done(&keeper->orders);
	inspector_free(keeper->inspector);
	folders_done(&keeper->steered);
	tables_done(&keeper->tables);
	cleanup_fd(&keeper->lock);
	remarks_done(&keeper->remarks);
	free(keeper);
}

static void cleanup_keeper(struct keeper **keeper)
{
	keeper_free(*keeper);
}

/* One daemon for each bpffs. */
static int take_daemon_lock(int *ret_fd, struct failure *failure)
{
	int err = lock_take("daemon", 0, ret_fd, failure);

	if (err == -EBUSY)
		return failure_set(
			failure, EXIT_FAILED, EBUSY,
			"another \"socksteer run\" keeps the groups of this bpffs already: "
			"stop it, or give it these groups too");
	return err;
}

/*
 * Under the lock of the pins: opens the tables. What is half done, or of another layout, is cleared away
 * and made anew; the groups are attached again by the first update, which counts their connections.
 */
static int open_tables(struct keeper *keeper, struct failure *failure)
{
	struct inventory inventory CLEANUP(inventory_done) = {};
	int lock CLEANUP(cleanup_fd) = -1;
	int err = pins_lock(&lock, failure);

	if (!err)
		err = tables_open(&keeper->tables, failure);
	if (err != -ENOENT && err != -EPROTO)
		return err;
	if (err == -EPROTO)
		log_line(
			LOG_PRIORITY_NOTICE,
			"the pins are of another version's layout: replacing them; until the groups "
			"are steered again the kernel's hash serves them");
	*failure = (struct failure){};
	err = inventory_scan_with(keeper->inspector, &inventory, failure);
	if (!err)
		err = clear_everything(&inventory, failure);
	return err ? err : tables_create(&keeper->tables, failure);
}

int keeper_new(const struct daemon_options *options, struct keeper **ret_keeper,
	       struct failure *failure)
{
	struct keeper *keeper CLEANUP(cleanup_keeper) = calloc(1, sizeof(*keeper));
	int err;

	if (!keeper)
		return failure_set(failure, EXIT_FAILED, ENOMEM, "out of memory");
	keeper->tables = TABLES_NONE;
	keeper->lock = -1;
	keeper->orders_are_new = true;
	err = orders_init(options, &keeper->orders, failure);
	if (!err)
		err = pins_check(failure);
	if (!err)
		err = take_daemon_lock(&keeper->lock, failure);
	if (!err)
		err = inspector_new(&keeper->inspector, failure);
	if (!err && watch_new(&keeper->watch))
		err = failure_set(failure, EXIT_FAILED, ENOMEM, "out of memory");
	if (!err)
		err = open_tables(keeper, failure);
	if (err)
		return err;
	watch_set_pins(keeper->watch);
	*ret_keeper = TAKE_PTR(keeper);
	return 0;
}

int keeper_get_events(const struct keeper *keeper)
{
	return keeper->tables.events;
}

struct inspector *keeper_get_inspector(const struct keeper *keeper)
{
	return keeper->inspector;
}

bool keeper_take_event(struct keeper *keeper, const struct event *event)
{
	if (!orders_concern(&keeper->orders, event))
		return false;
	if (event->kind == EVENT_LISTENER_JOINED && !keeper->oldest_join_ns)
		keeper->oldest_join_ns = event->time_ns;
	return true;
}

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

static bool condition_is_steered(enum group_condition condition)
{
	return condition == CONDITION_STEERED || condition == CONDITION_REBORN;
}

static int refresh_one(struct keeper *keeper, const struct pinned_group *pinned,
		       const struct group *place, const struct inventory *inventory)
{
	struct refresh_report report;
	struct failure failure = {};
	int err;

	if (keeper->orders_are_new && handover_settings(&keeper->orders, pinned, place, &failure))
		log_line(LOG_PRIORITY_ERROR, "%s", failure.message);
	err = group_refresh(pinned, inventory, &keeper->tables, &report, &failure);
	if (err == -ESTALE)
		return err;
	if (err) {
		remark(&keeper->remarks, pinned->folder, LOG_PRIORITY_ERROR, failure.message);
		return 0;
	}
	report_refresh(&keeper->remarks, pinned, &report, keeper->oldest_join_ns);
	keeper->changed |= report.sync.nr_added || report.sync.nr_removed;
	keeper->nr_steered += condition_is_steered(report.condition);
	return report.incomplete ? -ESTALE : 0;
}

/* Brings the pinned groups up to date. -ESTALE: something moved, look again. */
static int refresh_all(struct keeper *keeper, const struct inventory *inventory)
{
	struct pinned pinned CLEANUP(pinned_done) = {};
	struct failure failure = {};
	int err, stale = 0;
	size_t i;

	err = pinned_open(&pinned, &failure);
	if (err) {
		remark(&keeper->remarks, "pins", LOG_PRIORITY_ERROR, failure.message);
		return -ESTALE;
	}
	keeper->nr_steered = 0;
	for (i = 0; i < pinned.nr_groups; i++) {
		struct group place;

		if (pinned.groups[i].err) {
			pinned_refuse(&pinned.groups[i], &failure);
			remark(&keeper->remarks, pinned.groups[i].folder, LOG_PRIORITY_ERROR,
			       failure.message);
			continue;
		}
		pinned_place(&pinned.groups[i], inventory, &place);
		if (!pinned.groups[i].whole || !orders_keep(&keeper->orders, &place))
			continue;
		folders_add(&keeper->steered, pinned.groups[i].folder);
		if (refresh_one(keeper, &pinned.groups[i], &place, inventory))
			stale = -ESTALE;
	}
	watch_set_groups(keeper->watch, &pinned);
	return stale;
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

/*
 * A few at a time, because each takes a good part of a second and everything else waits; the next call
 * goes on behind the last one, so that groups which cannot be attached hold up no others.
 */
static void attach_missing(struct keeper *keeper, const struct inventory *inventory)
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

static int scan_and_refresh(struct keeper *keeper, struct inventory *inventory)
{
	int lock CLEANUP(cleanup_fd) = -1;
	struct failure failure = {};
	int err = pins_lock(&lock, &failure);

	if (!err)
		err = inventory_scan_with(keeper->inspector, inventory, &failure);
	if (err) {
		remark(&keeper->remarks, "scan", LOG_PRIORITY_ERROR, failure.message);
		return -ESTALE;
	}
	remark(&keeper->remarks, "scan", LOG_PRIORITY_INFO, "");
	return refresh_all(keeper, inventory);
}

/* What was attached just now is watched too. */
static void watch_attached(struct keeper *keeper)
{
	struct pinned pinned CLEANUP(pinned_done) = {};
	struct failure failure = {};
	size_t i;

	if (pinned_open(&pinned, &failure))
		return;
	for (i = 0; i < pinned.nr_groups; i++)
		if (pinned.groups[i].whole)
			folders_add(&keeper->steered, pinned.groups[i].folder);
	watch_set_groups(keeper->watch, &pinned);
}

bool keeper_update(struct keeper *keeper)
{
	int tries, stale = -ESTALE;

	keeper->has_attached = false;
	if (keeper->tables.layout < 0)
		return true;
	for (tries = 0; stale && tries < MAX_TRIES; tries++) {
		struct inventory inventory CLEANUP(inventory_done) = {};

		stale = scan_and_refresh(keeper, &inventory);
		if (!stale || tries == MAX_TRIES - 1)
			attach_missing(keeper, &inventory);
	}
	watch_attached(keeper);
	if (!stale && !keeper->has_more) {
		keeper->orders_are_new = false;
		keeper->oldest_join_ns = 0;
	}
	return !stale && !keeper->has_more;
}

bool keeper_has_attached(const struct keeper *keeper)
{
	return keeper->has_attached;
}

enum watch_change keeper_look(struct keeper *keeper)
{
	return watch_look(keeper->watch);
}

/* What is there now; while no group was steered yet, it cannot have been detached, so it is made anew. */
static int reopen_tables(struct keeper *keeper, struct failure *failure)
{
	int lock CLEANUP(cleanup_fd) = -1;
	int err;

	if (!keeper->steered.nr)
		return open_tables(keeper, failure);
	err = pins_lock(&lock, failure);
	return err ? err : tables_open(&keeper->tables, failure);
}

void keeper_reopen(struct keeper *keeper)
{
	struct failure failure = {};

	auditor_free(keeper->auditor);
	keeper->auditor = NULL;
	tables_done(&keeper->tables);
	if (reopen_tables(keeper, &failure))
		remark(&keeper->remarks, "pins", LOG_PRIORITY_NOTICE,
		       failure.message[0] ? failure.message :
					    "everything was detached by hand: idle until a group "
					    "is attached, or SIGHUP");
	else
		remark(&keeper->remarks, "pins", LOG_PRIORITY_INFO, "");
	watch_set_pins(keeper->watch);
	watch_set_groups(keeper->watch, &(struct pinned){});
}

int keeper_reload(struct keeper *keeper, struct failure *failure)
{
	int err = handover_orders(&keeper->orders, keeper->inspector, &keeper->tables, failure);

	if (err)
		return err;
	keeper->orders_are_new = true;
	folders_done(&keeper->steered);
	if (keeper->tables.layout < 0)
		err = open_tables(keeper, failure);
	watch_set_pins(keeper->watch);
	return err;
}

void keeper_audit(struct keeper *keeper)
{
	struct audit_report report CLEANUP(audit_done) = {};
	struct failure failure = {};
	int err = 0;

	keeper->changed = false;
	if (keeper->tables.layout < 0 || !keeper->nr_steered)
		return;
	if (!keeper->auditor)
		err = auditor_new(&keeper->tables, &keeper->auditor, &failure);
	if (!err)
		err = audit_run_with(keeper->inspector, keeper->auditor, NULL, REPAIR_SEEN, &report,
				     &failure);
	remark(&keeper->remarks, "audit", LOG_PRIORITY_ERROR, err ? failure.message : "");
	if (!err)
		report_audit(&keeper->remarks, &report);
}

bool keeper_wants_audit(const struct keeper *keeper)
{
	return keeper->changed;
}

size_t keeper_nr_steered(const struct keeper *keeper)
{
	return keeper->nr_steered;
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

int keeper_detach(struct keeper *keeper, struct failure *failure)
{
	int err = handover_end(&keeper->orders, NULL, keeper->inspector, &keeper->tables, failure);

	clear_unused_tables();
	return err;
}
