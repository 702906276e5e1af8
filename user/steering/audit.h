/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Comparing what the counters say that workers hold with the kernel's own sockets, and mending it.
 *
 * Connections come and go while sockets are counted, so a pass tells each difference only within
 * bounds: what was opened and closed meanwhile, and what waited in a queue. And a connection is in no
 * table of files for a moment while it is accepted or closed. So a difference counts only if every one
 * of several passes finds it; what is mended is the part that all of them agree upon. Where connections
 * come and go fast a small difference may stay unseen until an audit at a calmer time.
 */
#ifndef SOCKSTEER_STEERING_AUDIT_H
#define SOCKSTEER_STEERING_AUDIT_H

#include "base/failure.h"
#include "base/text.h"
#include "socksteer/types.h"
#include "steering/inventory.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct inspector;

/* Counter minus sockets: it lies between low and high, both included. */
struct audit_difference {
	int64_t low;
	int64_t high;
};

struct audit_row {
	uint32_t slot;
	uint32_t pid;
	char comm[COMM_SIZE]; /* not escaped */
	uint64_t held; /* what the counters say of the listener */
	uint64_t counted; /* its sockets, the queue included */
	struct audit_difference listener;
	struct audit_difference worker; /* over all listeners of its worker */
};

struct audit_group {
	char name[ADDRESS_TEXT_SIZE];
	uint32_t netns;
	struct audit_row *rows; /* owned, by slot */
	size_t nr_rows;
};

struct audit_report {
	struct audit_group *groups; /* owned */
	size_t nr_groups;
	uint64_t nr_connections;
	uint64_t nr_misplaced; /* charged to another worker than the one that holds them */
	uint64_t nr_unrecorded; /* charged to nobody */
	uint64_t nr_adjusted; /* connections by which counters were changed; 0 without repair */
	uint32_t nr_passes;
	uint64_t duration_ns;
	bool repaired; /* repair was asked for */
};

/* What is certain of a difference: the bound next to zero, or zero between them. */
int64_t audit_certain(const struct audit_difference *difference);

/* No pass yet. */
#define AUDIT_UNKNOWN                                                                              \
	(struct audit_difference)                                                                  \
	{                                                                                          \
		INT64_MAX, INT64_MIN                                                               \
	}

/* Widens what is known by the bounds of one more pass. Pure. */
struct audit_pass {
	struct load before;
	struct load after;
	uint64_t counted; /* sockets, and the queue when it was seen last */
	uint64_t queued_most;
};
void audit_add_pass(const struct audit_pass *pass, struct audit_difference *difference);

/* True if the counters agree with the sockets, as far as is certain. */
bool audit_is_clean(const struct audit_report *report);

struct auditor;

enum audit_repair {
	REPAIR_NONE,
	REPAIR_ALL,
	/*
	 * All but what no file shows: a descriptor on its way to another process, or one of io_uring, is
	 * in no table of files, and its connection is held nevertheless.
	 */
	REPAIR_SEEN,
};

/*
 * Audits all groups, and with repair mends them; the report is of the one that matches spec, or of all
 * if it is NULL, but for the totals. Takes the lock
 * of the pins. EXIT_NOTHING for a spec that matches no steered group. The caller ends *ret_report with
 * audit_done().
 */
int audit_run(struct inspector *inspector, const struct group_spec *spec, enum audit_repair repair,
	      struct audit_report *ret_report, struct failure *failure);

/* The same with an auditor that is loaded already; of the tables that are pinned now. */
int audit_run_with(struct inspector *inspector, struct auditor *auditor,
		   const struct group_spec *spec, enum audit_repair repair,
		   struct audit_report *ret_report, struct failure *failure);
void audit_done(struct audit_report *report);

/*
 * The same for all groups in steps, a pass each, for who has other things to do meanwhile. Between two
 * steps have to be AUDIT_PAUSE_MS: more time than a connection needs to be accepted or closed, even by
 * a worker that is not let run.
 */
#define AUDIT_PAUSE_MS 40

struct audit;

/* Borrows the auditor, which nobody else may use until audit_free(). -ENOMEM. */
int audit_new(struct auditor *auditor, enum audit_repair repair, struct audit **ret_audit);
void audit_free(struct audit *audit);

/*
 * Takes the lock of the pins for one pass, and with the last one mends; then *ret_done is true. -ESTALE
 * when a listener got or lost its row since the step before, so that the passes cannot be compared:
 * the audit is over then, as after any other failure. -ENOENT without a message when nothing is pinned.
 */
int audit_step(struct audit *audit, struct inspector *inspector, bool *ret_done,
	       struct failure *failure);

/* After the last step. The caller ends *ret_report with audit_done(). */
void audit_take_report(struct audit *audit, struct audit_report *ret_report);

#endif
