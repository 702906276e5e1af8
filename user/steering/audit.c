/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/cleanup.h"
#include "base/clock.h"
#include "kernel/pins.h"
#include "steering/audit_state.h"
#include "steering/scan.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

/* A difference that one pass finds has to be found by so many in all. */
#define CONFIRMING_PASSES 5

static void audit_clear(struct audit *audit)
{
	auditor_free(audit->own);
	tables_done(&audit->tables);
	free(audit->roster);
	free(audit->subjects);
	audit_done(&audit->report);
}

/* One more; true in *ret_done if it was the last. */
static int make_pass(struct audit *audit, bool *ret_done)
{
	int err = audit_make_pass(audit, audit->repair != REPAIR_NONE);

	if (err)
		return err;
	audit->report.duration_ns = clock_now_ns() - audit->start_ns;
	*ret_done = !audit_differs(audit) || audit->report.nr_passes == CONFIRMING_PASSES;
	return *ret_done && audit->repair != REPAIR_NONE ? audit_mend(audit) : 0;
}

static int make_passes(struct audit *audit)
{
	bool is_done = false;
	int err = make_pass(audit, &is_done);

	while (!err && !is_done) {
		poll(NULL, 0, AUDIT_PAUSE_MS);
		err = make_pass(audit, &is_done);
	}
	return err;
}

static int open_audit(struct audit *audit)
{
	int err = tables_open(&audit->tables, audit->failure);

	if (err)
		return err;
	err = roster_read(&audit->tables, &audit->roster);
	if (!err && audit->auditor)
		err = auditor_forget(audit->auditor);
	if (err)
		return audit_maps_failed(audit, err);
	if (audit->auditor)
		return 0;
	err = auditor_new(&audit->tables, &audit->own, audit->failure);
	audit->auditor = audit->own;
	return err;
}

/* Leaves only one group in the report; the groups are in the order of the pins, those that are whole. */
static void report_only(struct audit_report *report, const struct pinned *pinned,
			const struct pinned_group *only)
{
	size_t i, index = 0;

	for (i = 0; &pinned->groups[i] != only; i++)
		index += pinned->groups[i].whole;
	for (i = 0; i < report->nr_groups; i++)
		if (i != index || !only->whole)
			free(report->groups[i].rows);
	if (only->whole)
		report->groups[0] = report->groups[index];
	report->nr_groups = only->whole;
}

static int audit_groups(struct audit *audit, struct inspector *inspector,
			const struct group_spec *spec)
{
	struct inventory inventory CLEANUP(inventory_done) = {};
	struct pinned pinned CLEANUP(pinned_done) = {};
	const struct pinned_group *only = NULL;
	int err;

	err = inventory_scan_with(inspector, &inventory, audit->failure);
	if (!err)
		err = pinned_open(&pinned, audit->failure);
	if (!err && spec)
		err = pinned_find(&pinned, spec, &inventory, &only, audit->failure);
	/* The daemon mends what it can read, and has said already what it cannot. */
	else if (!err && audit->repair != REPAIR_SEEN)
		err = pinned_check(&pinned, audit->failure);
	if (err)
		return err;
	err = open_audit(audit);
	if (err)
		return err == -ENOENT ? 0 : err;
	err = audit_add_groups(audit, &pinned, &inventory);
	if (!err)
		err = make_passes(audit);
	if (!err && only)
		report_only(&audit->report, &pinned, only);
	return err;
}

int audit_run_with(struct inspector *inspector, struct auditor *auditor,
		   const struct group_spec *spec, enum audit_repair repair,
		   struct audit_report *ret_report, struct failure *failure)
{
	struct audit audit CLEANUP(audit_clear) = {
		.auditor = auditor,
		.tables = TABLES_NONE,
		.repair = repair,
		.start_ns = clock_now_ns(),
		.failure = failure,
	};
	int lock CLEANUP(cleanup_fd) = -1;
	int err = pins_lock(&lock, failure);

	if (!err)
		err = audit_groups(&audit, inspector, spec);
	if (!err)
		audit_take_report(&audit, ret_report);
	return err;
}

int audit_run(struct inspector *inspector, const struct group_spec *spec, enum audit_repair repair,
	      struct audit_report *ret_report, struct failure *failure)
{
	return audit_run_with(inspector, NULL, spec, repair, ret_report, failure);
}

int audit_new(struct auditor *auditor, enum audit_repair repair, struct audit **ret_audit)
{
	struct audit *audit = calloc(1, sizeof(*audit));

	if (!audit)
		return -ENOMEM;
	audit->auditor = auditor;
	audit->tables = TABLES_NONE;
	audit->repair = repair;
	*ret_audit = audit;
	return 0;
}

void audit_free(struct audit *audit)
{
	if (audit)
		audit_clear(audit);
	free(audit);
}

/*
 * Whom the auditor charges is from the first step, and so are the rows. A command may have changed them
 * while nobody held the lock; every change is in these tables, since a new owner has a new generation.
 */
static int check_rows(struct audit *audit)
{
	struct roster *now CLEANUP(cleanup_free) = NULL;
	int err = roster_read(&audit->tables, &now);

	if (err)
		return audit_maps_failed(audit, err);
	if (memcmp(now->workers, audit->roster->workers, sizeof(now->workers)) ||
	    memcmp(now->listeners, audit->roster->listeners, sizeof(now->listeners)))
		return failure_set(audit->failure, EXIT_FAILED, ESTALE,
				   "the listeners changed while their connections were counted");
	return 0;
}

static int begin(struct audit *audit, struct inspector *inspector)
{
	struct inventory inventory CLEANUP(inventory_done) = {};
	struct pinned pinned CLEANUP(pinned_done) = {};
	int err = inventory_scan_with(inspector, &inventory, audit->failure);

	audit->start_ns = clock_now_ns();
	if (!err)
		err = pinned_open(&pinned, audit->failure);
	if (!err)
		err = open_audit(audit);
	return err ? err : audit_add_groups(audit, &pinned, &inventory);
}

int audit_step(struct audit *audit, struct inspector *inspector, bool *ret_done,
	       struct failure *failure)
{
	int lock CLEANUP(cleanup_fd) = -1;
	int err = pins_lock(&lock, failure);

	audit->failure = failure;
	if (!err)
		err = audit->roster ? check_rows(audit) : begin(audit, inspector);
	/* What was charged anew stays so. */
	if (err == -ESTALE && audit->repair != REPAIR_NONE)
		audit_count_repairs(audit);
	return err ? err : make_pass(audit, ret_done);
}

void audit_take_report(struct audit *audit, struct audit_report *ret_report)
{
	*ret_report = audit->report;
	audit->report = (struct audit_report){};
}
