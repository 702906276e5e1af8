/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One pass over every established connection of the steered groups, done in the kernel, and the
 * change of counters by hand. Loaded once, run as often as is needed.
 */
#ifndef SOCKSTEER_KERNEL_AUDITOR_H
#define SOCKSTEER_KERNEL_AUDITOR_H

#include "base/failure.h"
#include "kernel/tables.h"
#include "socksteer/types.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct auditor;

/* What a pass counted, by row. Borrowed from the auditor, and valid until its next pass. */
struct audit_counts {
	struct audit_totals totals;
	const uint32_t *listener_seen; /* MAX_LISTENERS each */
	const uint32_t *listener_queued;
	const uint32_t *listener_queued_most; /* the longest that the queue was seen */
	const uint32_t *worker_seen; /* MAX_WORKERS */
};

/* Keeps no reference to tables. Fails with a message. */
int auditor_new(const struct tables *tables, struct auditor **ret_auditor, struct failure *failure);
void auditor_free(struct auditor *auditor);

/* Forgets all groups and holders, for the next audit. */
int auditor_forget(struct auditor *auditor);

/* Which connections belong to a group: those with this address as their own. */
int auditor_add_place(struct auditor *auditor, const struct audit_place *place, uint32_t group);

/* Whom to charge for connections of the group that this event loop or process holds. The first wins. */
int auditor_add_holder(struct auditor *auditor, const struct audit_holder *holder,
		       const struct conn_owner *owner);

/* With repair, connections are charged to who holds them. */
int auditor_run(struct auditor *auditor, bool repair, struct audit_counts *ret_counts,
		struct failure *failure);

/* Adds to the counters. Rows that have new owners by now are left alone. */
int auditor_adjust(struct auditor *auditor, const struct audit_adjustment *adjustment);

#endif
