/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/values.h"
#include "steering/audit_state.h"

#include <stdlib.h>

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

static int mend_one(struct audit *audit, size_t index)
{
	const struct subject *subject = &audit->subjects[index];
	uint32_t worker = subject->member.worker, listener = subject->member.listener;
	struct audit_adjustment adjustment = {
		.listener_held = to_add(&subject->row->listener, audit->repair),
		.worker = worker,
		.worker_generation = audit->roster->workers[worker].generation,
		.listener = listener,
		.listener_generation = audit->roster->listeners[listener].generation,
	};
	int err;

	if (is_first_of_worker(audit, index))
		adjustment.worker_held = to_add(&subject->row->worker, audit->repair);
	if (!adjustment.worker_held && !adjustment.listener_held)
		return 0;
	err = auditor_adjust(audit->auditor, &adjustment);
	if (err)
		return audit_maps_failed(audit, err);
	audit->report.nr_adjusted += (uint64_t)llabs(adjustment.listener_held);
	if (!adjustment.listener_held)
		audit->report.nr_adjusted += (uint64_t)llabs(adjustment.worker_held);
	return 0;
}

int audit_count_repairs(struct audit *audit)
{
	const struct audit_report *report = &audit->report;
	struct audits audits = {};
	int err = value_read(audit->tables.audits, 0, &audits);

	audits.runs++;
	audits.moved += report->nr_misplaced + report->nr_unrecorded;
	audits.adjusted += report->nr_adjusted;
	if (!err)
		err = value_write(audit->tables.audits, 0, &audits);
	return err ? audit_maps_failed(audit, err) : 0;
}

int audit_mend(struct audit *audit)
{
	size_t i;
	int err = 0;

	audit->report.repaired = true;
	for (i = 0; i < audit->nr_subjects && !err; i++)
		err = mend_one(audit, i);
	return err ? err : audit_count_repairs(audit);
}
