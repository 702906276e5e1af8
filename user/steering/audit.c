/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/audit.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "kernel/auditor.h"
#include "kernel/pins.h"
#include "kernel/tables.h"
#include "kernel/values.h"
#include "steering/pinned.h"
#include "steering/place.h"
#include "steering/roster.h"
#include "steering/scan.h"
#include "steering/seed.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

/*
 * A difference that one pass finds has to be found by so many in all. Between them is more time than a
 * connection needs to be accepted or closed, even by a worker that is not let run.
 */
#define CONFIRMING_PASSES 5
#define BETWEEN_PASSES_MS 40

/* One listener that is audited, and its place in the report. */
struct subject {
	struct member member;
	struct audit_row *row; /* borrowed from the report */
	struct load listener_before;
	struct load worker_before;
};

struct audit {
	struct auditor *own; /* owned; NULL where the caller lends one */
	struct auditor *auditor; /* borrowed */
	struct tables tables; /* owned */
	struct roster *roster; /* owned */
	struct subject *subjects; /* owned */
	size_t nr_subjects;
	struct audit_report report; /* owned until it is handed over */
	struct failure *failure;
};

static void audit_free(struct audit *audit)
{
	auditor_free(audit->own);
	tables_done(&audit->tables);
	free(audit->roster);
	free(audit->subjects);
	audit_done(&audit->report);
}

void audit_done(struct audit_report *report)
{
	size_t i;

	for (i = 0; i < report->nr_groups; i++)
		free(report->groups[i].rows);
	free(report->groups);
	*report = (struct audit_report){};
}

int64_t audit_certain(const struct audit_difference *difference)
{
	if (difference->low > 0)
		return difference->low;
	return difference->high < 0 ? difference->high : 0;
}

void audit_add_pass(const struct audit_pass *pass, struct audit_difference *difference)
{
	int64_t held = (int64_t)(pass->after.opened - pass->after.closed);
	int64_t over = held - (int64_t)pass->counted;
	int64_t low = over - (int64_t)(pass->after.opened - pass->before.opened) -
		      (int64_t)pass->queued_most;
	int64_t high = over + (int64_t)(pass->after.closed - pass->before.closed) +
		       (int64_t)pass->queued_most;

	if (low < difference->low)
		difference->low = low;
	if (high > difference->high)
		difference->high = high;
}

bool audit_is_clean(const struct audit_report *report)
{
	size_t i, j;

	if (report->nr_misplaced || report->nr_unrecorded)
		return false;
	for (i = 0; i < report->nr_groups; i++)
		for (j = 0; j < report->groups[i].nr_rows; j++)
			if (audit_certain(&report->groups[i].rows[j].listener) ||
			    audit_certain(&report->groups[i].rows[j].worker))
				return false;
	return true;
}

static int out_of_memory(struct audit *audit)
{
	return failure_set(audit->failure, EXIT_FAILED, ENOMEM, "out of memory");
}

static int maps_failed(struct audit *audit, int err)
{
	return failure_set(audit->failure, EXIT_FAILED, -err,
			   "cannot read the maps below " PINS_PATH ": %s", strerror(-err));
}

static void row_init(struct audit_row *row, uint32_t slot, const struct worker *worker)
{
	*row = (struct audit_row){
		.slot = slot,
		.pid = worker->pid,
		.listener = AUDIT_UNKNOWN,
		.worker = AUDIT_UNKNOWN,
	};
	memcpy(row->comm, worker->comm, sizeof(row->comm));
}

static int add_subjects(struct audit *audit, const struct pinned_group *pinned,
			struct audit_group *group)
{
	struct member *members CLEANUP(cleanup_free) = calloc(MAX_SLOTS, sizeof(*members));
	uint32_t slot;
	int err;

	group->rows = calloc(MAX_SLOTS, sizeof(*group->rows));
	if (!members || !group->rows)
		return out_of_memory(audit);
	err = values_read(pinned->maps.members, members, sizeof(*members), MAX_SLOTS);
	if (err)
		return maps_failed(audit, err);
	for (slot = 0; slot < MAX_SLOTS; slot++) {
		const struct member *member = &members[slot];
		struct audit_row *row = &group->rows[group->nr_rows];

		if (!member->cookie || member->worker >= MAX_WORKERS ||
		    member->listener >= MAX_LISTENERS || audit->nr_subjects == MAX_LISTENERS)
			continue;
		row_init(row, slot, &audit->roster->workers[member->worker]);
		group->nr_rows++;
		audit->subjects[audit->nr_subjects++] =
			(struct subject){ .member = *member, .row = row };
	}
	return 0;
}

static int add_group(struct audit *audit, const struct pinned_group *pinned,
		     const struct group *live)
{
	uint32_t number = (uint32_t)audit->report.nr_groups;
	struct audit_group *group = &audit->report.groups[audit->report.nr_groups++];
	struct group place;
	int err;

	group_of_settings(&pinned->settings, &place);
	group_name(&place, group->name);
	group->netns = place.netns;
	/* Of a group that ended, connections may live on; nobody new can be charged for them. */
	err = seed_prepare(audit->auditor, live ? live : &place, audit->roster, number);
	return err ? maps_failed(audit, err) : add_subjects(audit, pinned, group);
}

/* All of them, whichever are asked for: a worker has one load over all its listeners. */
static int add_groups(struct audit *audit, const struct pinned *pinned,
		      const struct inventory *inventory)
{
	size_t i;
	int err = 0;

	audit->report.groups = calloc(pinned->nr_groups + 1, sizeof(*audit->report.groups));
	audit->subjects = calloc(MAX_LISTENERS, sizeof(*audit->subjects));
	if (!audit->report.groups || !audit->subjects)
		return out_of_memory(audit);
	for (i = 0; i < pinned->nr_groups && !err; i++)
		if (pinned->groups[i].whole)
			err = add_group(audit, &pinned->groups[i],
					pinned_live(&pinned->groups[i], inventory));
	return err;
}

static int read_loads(struct audit *audit, const struct subject *subject, struct load *ret_listener,
		      struct load *ret_worker)
{
	int err = load_read(audit->tables.listener_load, subject->member.listener, ret_listener);

	if (!err)
		err = load_read(audit->tables.worker_load, subject->member.worker, ret_worker);
	return err ? maps_failed(audit, err) : 0;
}

static int read_before(struct audit *audit)
{
	size_t i;
	int err = 0;

	for (i = 0; i < audit->nr_subjects && !err; i++)
		err = read_loads(audit, &audit->subjects[i], &audit->subjects[i].listener_before,
				 &audit->subjects[i].worker_before);
	return err;
}

/* What waits in the queues of all listeners of a worker. */
static uint64_t worker_queued(const struct roster *roster, const uint32_t *queued, uint32_t worker)
{
	uint64_t sum = 0;
	uint32_t row;

	for (row = 0; row < MAX_LISTENERS; row++)
		if (queued[row] && roster->listeners[row].cookie &&
		    roster->listeners[row].worker == worker)
			sum += queued[row];
	return sum;
}

static int compare_one(struct audit *audit, const struct subject *subject,
		       const struct audit_counts *counts)
{
	const struct member *member = &subject->member;
	struct audit_row *row = subject->row;
	struct audit_pass listener = {
		.before = subject->listener_before,
		.counted = counts->listener_seen[member->listener] +
			   counts->listener_queued[member->listener],
		.queued_most = counts->listener_queued_most[member->listener],
	};
	struct audit_pass worker = {
		.before = subject->worker_before,
		.counted = counts->worker_seen[member->worker] +
			   worker_queued(audit->roster, counts->listener_queued, member->worker),
		.queued_most =
			worker_queued(audit->roster, counts->listener_queued_most, member->worker),
	};
	int err = read_loads(audit, subject, &listener.after, &worker.after);

	if (err)
		return err;
	audit_add_pass(&listener, &row->listener);
	audit_add_pass(&worker, &row->worker);
	row->held = listener.after.opened - listener.after.closed;
	row->counted = listener.counted;
	return 0;
}

static bool differs(const struct audit *audit)
{
	size_t i;

	for (i = 0; i < audit->nr_subjects; i++)
		if (audit_certain(&audit->subjects[i].row->listener) ||
		    audit_certain(&audit->subjects[i].row->worker))
			return true;
	return false;
}

static int one_pass(struct audit *audit, bool repair)
{
	struct audit_report *report = &audit->report;
	struct audit_counts counts;
	size_t i;
	int err;

	err = read_before(audit);
	if (!err)
		err = auditor_run(audit->auditor, repair, &counts, audit->failure);
	for (i = 0; i < audit->nr_subjects && !err; i++)
		err = compare_one(audit, &audit->subjects[i], &counts);
	if (err)
		return err;
	report->nr_connections = counts.totals.connections;
	/* Without repair each pass finds the same again. */
	report->nr_misplaced = counts.totals.misplaced + (repair ? report->nr_misplaced : 0);
	report->nr_unrecorded = counts.totals.unrecorded + (repair ? report->nr_unrecorded : 0);
	report->nr_passes++;
	return 0;
}

static int make_passes(struct audit *audit, bool repair)
{
	uint64_t start_ns = clock_now_ns();
	int err;

	err = one_pass(audit, repair);
	while (!err && differs(audit) && audit->report.nr_passes < CONFIRMING_PASSES) {
		poll(NULL, 0, BETWEEN_PASSES_MS);
		err = one_pass(audit, repair);
	}
	audit->report.duration_ns = clock_now_ns() - start_ns;
	return err;
}

/* A worker's difference is mended once, by the first of its listeners. */
static bool is_first_of_worker(const struct audit *audit, size_t index)
{
	size_t i;

	for (i = 0; i < index; i++)
		if (audit->subjects[i].member.worker == audit->subjects[index].member.worker)
			return false;
	return true;
}

/* What a counter has to be changed by. */
static int64_t to_add(const struct audit_difference *difference, enum audit_repair repair)
{
	int64_t certain = audit_certain(difference);

	return repair == REPAIR_SEEN && certain > 0 ? 0 : -certain;
}

static int mend_one(struct audit *audit, size_t index, enum audit_repair repair)
{
	const struct subject *subject = &audit->subjects[index];
	uint32_t worker = subject->member.worker, listener = subject->member.listener;
	struct audit_adjustment adjustment = {
		.listener_held = to_add(&subject->row->listener, repair),
		.worker = worker,
		.worker_generation = audit->roster->workers[worker].generation,
		.listener = listener,
		.listener_generation = audit->roster->listeners[listener].generation,
	};
	int err;

	if (is_first_of_worker(audit, index))
		adjustment.worker_held = to_add(&subject->row->worker, repair);
	if (!adjustment.worker_held && !adjustment.listener_held)
		return 0;
	err = auditor_adjust(audit->auditor, &adjustment);
	if (err)
		return maps_failed(audit, err);
	audit->report.nr_adjusted += (uint64_t)llabs(adjustment.listener_held);
	if (!adjustment.listener_held)
		audit->report.nr_adjusted += (uint64_t)llabs(adjustment.worker_held);
	return 0;
}

/* For the views; under the lock of the pins, so nobody else counts meanwhile. */
static int count_repairs(struct audit *audit)
{
	const struct audit_report *report = &audit->report;
	struct audits audits = {};
	int err = value_read(audit->tables.audits, 0, &audits);

	audits.runs++;
	audits.moved += report->nr_misplaced + report->nr_unrecorded;
	audits.adjusted += report->nr_adjusted;
	if (!err)
		err = value_write(audit->tables.audits, 0, &audits);
	return err ? maps_failed(audit, err) : 0;
}

static int mend(struct audit *audit, enum audit_repair repair)
{
	size_t i;
	int err = 0;

	audit->report.repaired = true;
	for (i = 0; i < audit->nr_subjects && !err; i++)
		err = mend_one(audit, i, repair);
	return err ? err : count_repairs(audit);
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
		return maps_failed(audit, err);
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
	err = add_groups(audit, &pinned, &inventory);
	if (!err)
		err = make_passes(audit, repair != REPAIR_NONE);
	if (!err && repair != REPAIR_NONE)
		err = mend(audit, repair);
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
