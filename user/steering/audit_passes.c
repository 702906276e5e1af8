/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/cleanup.h"
#include "kernel/pins.h"
#include "kernel/values.h"
#include "steering/audit_state.h"
#include "steering/place.h"
#include "steering/seed.h"

#include <errno.h>
#include <string.h>

int audit_out_of_memory(struct audit *audit)
{
	return failure_set(audit->failure, EXIT_FAILED, ENOMEM, "out of memory");
}

int audit_maps_failed(struct audit *audit, int err)
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
		return audit_out_of_memory(audit);
	err = values_read(pinned->maps.members, members, sizeof(*members), MAX_SLOTS);
	if (err)
		return audit_maps_failed(audit, err);
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
	return err ? audit_maps_failed(audit, err) : add_subjects(audit, pinned, group);
}

int audit_add_groups(struct audit *audit, const struct pinned *pinned,
		     const struct inventory *inventory)
{
	size_t i;
	int err = 0;

	audit->report.groups = calloc(pinned->nr_groups + 1, sizeof(*audit->report.groups));
	audit->subjects = calloc(MAX_LISTENERS, sizeof(*audit->subjects));
	if (!audit->report.groups || !audit->subjects)
		return audit_out_of_memory(audit);
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
	return err ? audit_maps_failed(audit, err) : 0;
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

bool audit_differs(const struct audit *audit)
{
	size_t i;

	for (i = 0; i < audit->nr_subjects; i++)
		if (audit_certain(&audit->subjects[i].row->listener) ||
		    audit_certain(&audit->subjects[i].row->worker))
			return true;
	return false;
}

int audit_make_pass(struct audit *audit, bool repair)
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
