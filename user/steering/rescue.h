/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rescuing: the queue of a listener whose worker hangs is moved to other listeners of its group, by
 * making the kernel migrate it (kernel/relisten.h). The listener keeps its slot, its rows and its
 * counters; where its connections went, an audit has to charge them.
 *
 * Before the listener is shut, its row of members says how to make it listen again, so that whoever
 * comes next can finish a rescue that was killed. Everything here is called under the lock of the pins.
 */
#ifndef SOCKSTEER_STEERING_RESCUE_H
#define SOCKSTEER_STEERING_RESCUE_H

#include "base/failure.h"
#include "base/text.h"
#include "kernel/group_maps.h"
#include "kernel/tables.h"
#include "steering/inventory.h"
#include "steering/pinned.h"
#include "steering/worker_spec.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rescue_report {
	uint32_t slot;
	uint64_t cookie;
	bool was_stuck; /* as steer had found it */
	uint32_t queued_before; /* if it is 0, nothing was done */
	uint32_t queued_after;
	uint32_t backlog_before;
	uint32_t backlog_after; /* lower if net.core.somaxconn was lowered since the listener opened */
	uint64_t duration_ns; /* from before the listener is shut until it is in its slot again */
};

/*
 * Rescues the listener in one slot. live is the group in an inventory that may be some time old: it tells
 * who holds the listener and which others nobody watches. 0 or -errno with *failure filled; refused is
 * - EXIT_NOTHING: the slot has no listener that is held, the group is not steered by us at the moment, or
 *   no other worker of the group could take the connections;
 * - EXIT_FAILED: it cannot be copied, or is another group's by now.
 * After a failure the listener listens, and if it does not, the message says so.
 */
int group_rescue(const struct pinned_group *pinned, const struct group *live,
		 const struct tables *tables, uint32_t slot, struct rescue_report *ret_report,
		 struct failure *failure);

/*
 * Wakes the workers of a group that wait although something is queued for them, by a scan of moments ago.
 * From 5.14 to the fix of April 2026 the kernel migrates the connections of a listener that closes
 * without waking who gets them. Where it does wake them, there are none, and this does nothing.
 */
void group_wake(const struct group *live);

/*
 * Finishes the rescues of a group that somebody began and was killed in. 0 if there were none; -ESTALE
 * without a message if there were, so that what was scanned before is out of date; else -errno with
 * *failure filled, and the next call tries again.
 */
int rescue_finish_pending(const struct group_maps *maps, const struct tables *tables,
			  struct failure *failure);

/* Gives up what cannot be finished, before the rows go: its worker may have listeners in other groups. */
void rescue_forget_pending(const struct group_maps *maps, const struct tables *tables);

/*
 * rescue_finish_pending() for all groups that are pinned. What cannot be finished stays in its row, for who brings that
 * group up to date next; it is no reason not to go on. True if what was scanned before is out of date.
 */
bool rescue_finish_all(void);

/* Whether a listener may be rescued without a person asking for it, at this moment. Pure. */
bool rescue_is_due(const struct member *member, uint64_t now_ns);

/* Counts a rescue in the row. Pure. */
void rescue_note(struct member *member, uint64_t now_ns);

/* What became of a worker that a person names; ended with worker_rescue_done(). */
struct worker_rescue {
	char group[ADDRESS_TEXT_SIZE];
	char worker[WORKER_TEXT_SIZE]; /* escaped */
	struct rescue_report *listeners; /* owned: each that the worker has in the group, by slot */
	size_t nr_listeners;
};

/*
 * Rescues all of its listeners. Takes the lock of the pins itself. Where it fails after it moved something,
 * *ret_rescue tells what.
 */
int worker_rescue(const struct group_spec *spec, const struct worker_spec *worker,
		  struct worker_rescue *ret_rescue, struct failure *failure);
void worker_rescue_done(struct worker_rescue *rescue);

#endif
