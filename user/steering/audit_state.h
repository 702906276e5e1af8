/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What an audit is made of, for the files that do its work: audit.c runs it, audit_passes.c looks,
 * audit_mending.c changes counters. Everybody else has audit.h.
 */
#ifndef SOCKSTEER_STEERING_AUDIT_STATE_H
#define SOCKSTEER_STEERING_AUDIT_STATE_H

#include "kernel/auditor.h"
#include "kernel/tables.h"
#include "steering/audit.h"
#include "steering/pinned.h"
#include "steering/roster.h"

#include <stdbool.h>
#include <stddef.h>

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
	enum audit_repair repair;
	uint64_t start_ns; /* of the first pass */
	struct failure *failure; /* borrowed for a step */
};

/* All of them, whichever are asked for: a worker has one load over all its listeners. */
int audit_add_groups(struct audit *audit, const struct pinned *pinned,
		     const struct inventory *inventory);

/* Looks at every connection once, and adds what it finds to the report. */
int audit_make_pass(struct audit *audit, bool repair);

/* True if all passes so far agree upon a difference. */
bool audit_differs(const struct audit *audit);

/* Changes the counters by what is certain of their differences. */
int audit_mend(struct audit *audit);

/* For the views, what was charged anew and changed. Under the lock, so nobody else counts meanwhile. */
int audit_count_repairs(struct audit *audit);

/* The same failure for all that read or write the maps, and for want of memory. They return it. */
int audit_maps_failed(struct audit *audit, int err);
int audit_out_of_memory(struct audit *audit);

#endif
