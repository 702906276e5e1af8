/* SPDX-License-Identifier: GPL-2.0-only */
/* Workers that hang: what is said of them, and their rescue. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/keeper_state.h"
#include "kernel/pins.h"
#include "steering/place.h"
#include "steering/rescue.h"
#include "steering/scan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NAME_TEXT_SIZE (4 * COMM_SIZE + 1)

/* Lines about hangs in a minute: a machine on which everything hangs must not drown in its own log. */
#define MAX_LINES 30
#define LINES_WINDOW_NS 60000000000

/* False if there were enough lines in this minute; the last one says so. */
static bool may_say(struct keeper *keeper)
{
	uint64_t now_ns = clock_now_ns();

	if (now_ns - keeper->hang_lines_since_ns > LINES_WINDOW_NS) {
		keeper->hang_lines_since_ns = now_ns;
		keeper->nr_hang_lines = 0;
	}
	if (keeper->nr_hang_lines > MAX_LINES)
		return false;
	if (keeper->nr_hang_lines++ < MAX_LINES)
		return true;
	log_line(LOG_PRIORITY_NOTICE,
		 "more workers hang than is logged in a minute: \"socksteer events\" shows all");
	return false;
}

/* "nginx (process 812)", of the last scan. */
static void name_worker(const struct keeper *keeper, uint64_t cookie, char *ret_text, size_t size)
{
	const struct group *group = inventory_find_cookie(&keeper->inventory, cookie);
	const struct listener *listener = group ? group_find_listener(group, cookie) : NULL;
	char comm[NAME_TEXT_SIZE];

	if (!listener) {
		snprintf(ret_text, size, "a listener");
		return;
	}
	text_escape(listener->comm, COMM_SIZE, comm, sizeof(comm));
	snprintf(ret_text, size, "%s (process %u)", comm, listener->pid);
}

void keeper_report_hang(struct keeper *keeper, const struct event *event)
{
	const struct group *group = inventory_find_cookie(&keeper->inventory, event->cookie);
	char name[ADDRESS_TEXT_SIZE] = "?", worker[NAME_TEXT_SIZE + 32];

	/* What waited in the ring since before the start is history. */
	if (event->time_ns < keeper->started_ns || !may_say(keeper))
		return;
	if (group)
		group_name(group, name);
	name_worker(keeper, event->cookie, worker, sizeof(worker));
	if (event->kind == EVENT_STUCK)
		log_line(LOG_PRIORITY_WARNING,
			 "%s: %s is stuck: it does not accept what waits in its queue, and every "
			 "policy but hash passes it over while others can take connections",
			 name, worker);
	else
		log_line(LOG_PRIORITY_NOTICE, "%s: %s takes connections again", name, worker);
}

static const struct pinned_group *find_folder(const struct pinned *pinned, const char *folder)
{
	size_t i;

	for (i = 0; i < pinned->nr_groups; i++)
		if (pinned->groups[i].whole && !strcmp(pinned->groups[i].folder, folder))
			return &pinned->groups[i];
	return NULL;
}

/* -ENOENT without a message when the group is gone. */
static int rescue_slot(struct keeper *keeper, const char *folder, uint32_t slot,
		       struct rescue_report *ret_report, struct failure *failure)
{
	struct pinned pinned CLEANUP(pinned_done) = {};
	const struct pinned_group *group;
	const struct group *live;
	int lock CLEANUP(cleanup_fd) = -1;
	int err = pins_lock(&lock, failure);

	if (!err)
		err = pinned_open(&pinned, failure);
	if (err)
		return err;
	group = find_folder(&pinned, folder);
	live = group ? pinned_live(group, &keeper->inventory) : NULL;
	if (!live)
		return -ENOENT;
	return group_rescue(group, live, &keeper->tables, slot, ret_report, failure);
}

/* Who holds the listener may have changed since the last scan. */
static int rescan(struct keeper *keeper)
{
	struct inventory inventory = {};
	struct failure failure = {};
	int err = inventory_scan_with(keeper->inspector, &inventory, &failure);

	if (err)
		return err;
	inventory_done(&keeper->inventory);
	keeper->inventory = inventory;
	return 0;
}

static void report_rescue(struct keeper *keeper, const struct rescue_report *report)
{
	const struct group *group = inventory_find_cookie(&keeper->inventory, report->cookie);
	char name[ADDRESS_TEXT_SIZE] = "?", worker[NAME_TEXT_SIZE + 32];

	if (!may_say(keeper))
		return;
	if (group)
		group_name(group, name);
	name_worker(keeper, report->cookie, worker, sizeof(worker));
	log_line(LOG_PRIORITY_NOTICE,
		 "%s: rescued %u connection%s from the queue of %s, slot %u, in %.1f ms", name,
		 report->queued_before, report->queued_before == 1 ? "" : "s", worker, report->slot,
		 (double)report->duration_ns / 1e6);
}

static void report_too_often(struct keeper *keeper, const char *about, uint64_t cookie)
{
	char worker[NAME_TEXT_SIZE + 32], text[NAME_TEXT_SIZE + 160];

	name_worker(keeper, cookie, worker, sizeof(worker));
	snprintf(
		text, sizeof(text),
		"%s was rescued %d times within a minute; what waits in its queue now is left there "
		"until that is over",
		worker, MAX_RESCUES_IN_WINDOW);
	remark(&keeper->remarks, about, LOG_PRIORITY_WARNING, text);
}

/* guard_handler */
static int rescue(const char *folder, uint32_t slot, const struct member *member, void *argument)
{
	struct keeper *keeper = argument;
	struct rescue_report report;
	struct failure failure = {};
	char about[FOLDER_SIZE + 32];
	int err;

	snprintf(about, sizeof(about), "rescue %s %u", folder, slot);
	if (!rescue_is_due(member, clock_now_ns())) {
		report_too_often(keeper, about, member->cookie);
		return 0;
	}
	err = rescue_slot(keeper, folder, slot, &report, &failure);
	/* Where nobody could help, a scan would not change that; all else may be out of date. */
	if (err && (failure.code != EXIT_NOTHING || err == -ESTALE) && !rescan(keeper)) {
		failure = (struct failure){};
		err = rescue_slot(keeper, folder, slot, &report, &failure);
	}
	remark(&keeper->remarks, about, LOG_PRIORITY_WARNING, err ? failure.message : "");
	if (err)
		return err;
	/* Its worker came to accept it all meanwhile. */
	if (!report.queued_before)
		return 0;
	report_rescue(keeper, &report);
	/* Its connections are charged to it until an audit finds who has them now. */
	keeper->changed = true;
	return 1;
}

uint64_t keeper_look_at_queues(struct keeper *keeper)
{
	return guard_look(keeper->guard, rescue, keeper);
}

uint64_t keeper_take_arrival(struct keeper *keeper, const struct event *event)
{
	guard_note_arrival(keeper->guard, event);
	return guard_delay(keeper->guard);
}
