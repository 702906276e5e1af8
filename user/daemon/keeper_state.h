/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a keeper is made of, for the files that do its jobs: keeper.c its life and its orders, upkeep.c
 * the updates, missing.c the groups that nobody steers yet, audits.c the audits, hangs.c
 * the workers that hang. Everybody else has keeper.h.
 */
#ifndef SOCKSTEER_DAEMON_KEEPER_STATE_H
#define SOCKSTEER_DAEMON_KEEPER_STATE_H

#include "daemon/absences.h"
#include "daemon/folders.h"
#include "daemon/guard.h"
#include "daemon/keeper.h"
#include "daemon/orders.h"
#include "daemon/remarks.h"
#include "daemon/watch.h"
#include "kernel/tables.h"
#include "steering/inventory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct audit;
struct auditor;
struct inspector;

struct keeper {
	struct orders orders; /* owned */
	bool orders_are_new; /* groups that are steered already have not been told */
	struct inspector *inspector; /* owned */
	struct tables tables; /* owned */
	int lock; /* held for as long as the daemon lives */
	struct auditor *auditor; /* owned; NULL until the first audit */
	struct audit *audit; /* owned, borrows auditor; NULL between two audits */
	bool disturbed; /* the last audit was given up, because listeners changed */
	struct watch *watch; /* owned */
	struct guard *guard; /* owned */
	struct inventory inventory; /* owned; of the last update */
	uint64_t started_ns; /* CLOCK_MONOTONIC */
	uint64_t hang_lines_since_ns; /* when the minute began of which lines about hangs are counted */
	uint32_t nr_hang_lines;
	struct folders steered; /* owned; groups that were seen pinned */
	struct absences absences; /* owned; of groups that were not named */
	bool has_more; /* groups to attach, after the last update */
	bool has_attached; /* one, in the last update */
	size_t attach_next; /* where to go on, in the order of the inventory */
	bool changed; /* listeners joined or left since the last audit */
	uint64_t oldest_join_ns; /* CLOCK_MONOTONIC, of joins since the last update; 0 for none */
	size_t nr_steered;
	bool restless; /* what comes and goes is not logged one by one */
	struct remarks remarks; /* owned */
};

/*
 * Attaches groups that listen and that nobody steers. A few at a time, because each takes a good part
 * of a second and everything else waits; the next call goes on behind the last one, so that groups
 * which cannot be attached hold up no others. A failure is remarked.
 */
void keeper_attach_missing(struct keeper *keeper, const struct inventory *inventory);

/*
 * Loads what audits need, once there is something to audit. It takes as long as an attach, so it is done
 * after one and not when the first audit is due, in the middle of whatever goes on then.
 */
void keeper_prepare_audit(struct keeper *keeper);

/* Lets go of everything that audits need, and gives up the one that goes on. */
void keeper_forget_audit(struct keeper *keeper);

#endif
