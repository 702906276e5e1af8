/* SPDX-License-Identifier: GPL-2.0-only */
/* One update: what is steered is brought up to date with what listens now. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/handover.h"
#include "daemon/keeper_state.h"
#include "daemon/reports.h"
#include "kernel/pins.h"
#include "steering/clear.h"
#include "steering/place.h"
#include "steering/refresh.h"
#include "steering/rescue.h"
#include "steering/scan.h"

#include <errno.h>

/* A scan that raced with a change is repeated at once, this often. */
#define MAX_TRIES 3

static bool condition_is_steered(enum group_condition condition)
{
	return condition == CONDITION_STEERED || condition == CONDITION_REBORN;
}

/* What may be otherwise at the next look, and again otherwise at the one after it. */
static bool condition_is_passing(enum group_condition condition)
{
	return condition_is_steered(condition) || condition == CONDITION_GONE;
}

static void report_unfinished(struct keeper *keeper, const struct pinned_group *pinned,
			      const struct refresh_report *report)
{
	char about[FOLDER_SIZE + 16];

	snprintf(about, sizeof(about), "unfinished %s", pinned->folder);
	remark(&keeper->remarks, about, LOG_PRIORITY_ERROR, report->unfinished.message);
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
	if (!keeper->restless || !condition_is_passing(report.condition))
		report_refresh(&keeper->remarks, pinned, &report, keeper->oldest_join_ns);
	keeper->changed |= report.sync.nr_added || report.sync.nr_removed;
	if (report.sync.nr_removed && pinned_live(pinned, inventory))
		group_wake(pinned_live(pinned, inventory));
	keeper->nr_steered += condition_is_steered(report.condition);
	report_unfinished(keeper, pinned, &report);
	return report.incomplete || report.unfinished.code != EXIT_DONE ? -ESTALE : 0;
}

static uint64_t longest_absence_ns(const struct keeper *keeper)
{
	uint64_t given_ns = keeper->orders.options->longest_absence_ns;

	return given_ns ? given_ns : LONGEST_ABSENCE_NS;
}

/*
 * The pins of a group that does not come back cost memory for ever. A group that was named keeps them:
 * somebody expects it, and may have changed its settings. What failed is tried again after as long.
 */
static void end_absent(struct keeper *keeper, struct pinned_group *pinned,
		       const struct group *place, const struct inventory *inventory)
{
	uint64_t now_ns = clock_now_ns();
	struct failure failure = {};
	char name[ADDRESS_TEXT_SIZE];

	if (pinned_live(pinned, inventory) || orders_name(&keeper->orders, place) ||
	    absences_note(&keeper->absences, pinned->folder, now_ns) < longest_absence_ns(keeper))
		return;
	absences_restart(&keeper->absences, pinned->folder, now_ns);
	if (clear_group(pinned->folder, inventory, &keeper->tables, &failure)) {
		remark(&keeper->remarks, pinned->folder, LOG_PRIORITY_ERROR, failure.message);
		return;
	}
	folders_remove(&keeper->steered, pinned->folder);
	remark(&keeper->remarks, pinned->folder, LOG_PRIORITY_INFO, "");
	group_name(place, name);
	log_line(LOG_PRIORITY_NOTICE,
		 "%s: nothing has listened for %lu s: its pins are removed, and made anew if it "
		 "comes back",
		 name, (unsigned long)(longest_absence_ns(keeper) / 1000000000));
	pinned->whole = false;
}

bool keeper_has_outdated(const struct keeper *keeper)
{
	return absences_reach(&keeper->absences, clock_now_ns(), longest_absence_ns(keeper));
}

static void watch_groups(struct keeper *keeper, const struct pinned *pinned)
{
	if (watch_set_groups(keeper->watch, pinned) || guard_set_groups(keeper->guard, pinned))
		log_line(LOG_PRIORITY_ERROR,
			 "cannot watch all groups: out of memory or descriptors; a program that is "
			 "replaced or a worker that hangs may not be noticed");
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
	absences_begin(&keeper->absences);
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
		end_absent(keeper, &pinned.groups[i], &place, inventory);
	}
	absences_end(&keeper->absences);
	watch_groups(keeper, &pinned);
	return stale;
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

	if (!pinned_open(&pinned, &failure))
		watch_groups(keeper, &pinned);
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
			keeper_attach_missing(keeper, &inventory);
		inventory_done(&keeper->inventory);
		keeper->inventory = inventory;
		inventory = (struct inventory){};
	}
	if (keeper->has_attached)
		watch_attached(keeper);
	keeper_prepare_audit(keeper);
	if (!stale && !keeper->has_more) {
		keeper->orders_are_new = false;
		keeper->oldest_join_ns = 0;
	}
	return !stale && !keeper->has_more;
}
