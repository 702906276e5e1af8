/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/cleanup.h"
#include "base/clock.h"
#include "kernel/pins.h"
#include "steering/audit_state.h"
#include "steering/scan.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

/*
 * A difference that one pass finds has to be found by so many in all. Between them is more time than a
 * connection needs to be accepted or closed, even by a worker that is not let run.
 */
#define CONFIRMING_PASSES 5
#define BETWEEN_PASSES_MS 40

static void audit_free(struct audit *audit)
{
	auditor_free(audit->own);
	tables_done(&audit->tables);
	free(audit->roster);
	free(audit->subjects);
	audit_done(&audit->report);
}

static int make_passes(struct audit *audit, bool repair)
{
	uint64_t start_ns = clock_now_ns();
	int err;

	err = audit_make_pass(audit, repair);
	while (!err && audit_differs(audit) && audit->report.nr_passes < CONFIRMING_PASSES) {
		poll(NULL, 0, BETWEEN_PASSES_MS);
		err = audit_make_pass(audit, repair);
	}
	audit->report.duration_ns = clock_now_ns() - start_ns;
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
			const struct group_spec *spec, enum audit_repair repair)
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
	else if (!err && repair != REPAIR_SEEN)
		err = pinned_check(&pinned, audit->failure);
	if (err)
		return err;
	err = open_audit(audit);
	if (err)
		return err == -ENOENT ? 0 : err;
	err = audit_add_groups(audit, &pinned, &inventory);
	if (!err)
		err = make_passes(audit, repair != REPAIR_NONE);
	if (!err && repair != REPAIR_NONE)
		err = audit_mend(audit, repair);
	if (!err && only)
		report_only(&audit->report, &pinned, only);
	return err;
}

int audit_run_with(struct inspector *inspector, struct auditor *auditor,
		   const struct group_spec *spec, enum audit_repair repair,
		   struct audit_report *ret_report, struct failure *failure)
{
	struct audit audit CLEANUP(audit_free) = {
		.auditor = auditor,
		.tables = TABLES_NONE,
		.failure = failure,
	};
	int lock CLEANUP(cleanup_fd) = -1;
	int err = pins_lock(&lock, failure);

	if (!err)
		err = audit_groups(&audit, inspector, spec, repair);
	if (err)
		return err;
	*ret_report = audit.report;
	audit.report = (struct audit_report){};
	return 0;
}

int audit_run(struct inspector *inspector, const struct group_spec *spec, enum audit_repair repair,
	      struct audit_report *ret_report, struct failure *failure)
{
	return audit_run_with(inspector, NULL, spec, repair, ret_report, failure);
}
