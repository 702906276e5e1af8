/* SPDX-License-Identifier: GPL-2.0-only */
/* The keeper's life, and what it is told. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/handover.h"
#include "daemon/keeper_state.h"
#include "daemon/reports.h"
#include "kernel/iterate.h"
#include "kernel/lock.h"
#include "kernel/pins.h"
#include "steering/clear.h"
#include "steering/scan.h"

#include <errno.h>
#include <string.h>

void keeper_free(struct keeper *keeper)
{
	if (!keeper)
		return;
	keeper_forget_audit(keeper);
	watch_free(keeper->watch);
	guard_free(keeper->guard);
	inventory_done(&keeper->inventory);
	orders_done(&keeper->orders);
	inspector_free(keeper->inspector);
	folders_done(&keeper->steered);
	absences_done(&keeper->absences);
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
	keeper->started_ns = clock_now_ns();
	err = orders_init(options, &keeper->orders, failure);
	if (!err)
		err = pins_check(failure);
	if (!err)
		err = take_daemon_lock(&keeper->lock, failure);
	if (!err)
		err = inspector_new(&keeper->inspector, failure);
	if (!err && (watch_new(&keeper->watch) || guard_new(&keeper->guard)))
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

void keeper_remark_churn(struct keeper *keeper, const struct churn *churn)
{
	report_churn(&keeper->remarks, churn);
}

void keeper_set_restless(struct keeper *keeper, bool restless)
{
	keeper->restless = restless;
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

	keeper_forget_audit(keeper);
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
	guard_set_groups(keeper->guard, &(struct pinned){});
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

size_t keeper_nr_steered(const struct keeper *keeper)
{
	return keeper->nr_steered;
}

int keeper_detach(struct keeper *keeper, struct failure *failure)
{
	int err = handover_end(&keeper->orders, NULL, keeper->inspector, &keeper->tables, failure);

	clear_unused_tables();
	return err;
}
