/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What changes of listeners may cost. Any local user can open and close listeners on a kept port in a
 * loop, and each change asks for a look at the whole machine. So these looks have an allowance of
 * processor time, which fills up while it is quiet: the first few of a burst are served at once, and
 * under constant change they come as often as CHURN_SHARE_PERMILLE of one CPU lets them.
 *
 * Pure: the caller says what time it is, by CLOCK_MONOTONIC, and what a look took.
 */
#ifndef SOCKSTEER_DAEMON_CHURN_H
#define SOCKSTEER_DAEMON_CHURN_H

#include "socksteer/types.h"
#include <stdbool.h>
#include <stdint.h>

#define CHURN_SHARE_PERMILLE 100

/*
 * A restart of 16 workers takes a few dozen looks of some milliseconds each: less than half of this.
 */
#define CHURN_CAPACITY_NS 500000000

/*
 * No look is put off for longer, so that a listener is in its slot soon after all on a machine where
 * one look takes more than its share of a second.
 */
#define CHURN_DELAY_MAX_NS 1000000000

struct churn {
	int64_t left_ns; /* of the allowance; negative when more was spent */
	uint64_t filled_ns; /* when left_ns was right */
	uint32_t port; /* that of most changes, if one has the majority */
	uint32_t netns;
	uint64_t lead; /* by how many changes */
	bool bites; /* the limit was reached, and it was not quiet since */
};

/* With all of the allowance. */
void churn_init(struct churn *churn, uint64_t now_ns);

/* A listener came or went. */
void churn_count(struct churn *churn, const struct event *event);

/* A look took that much processor time until now. */
void churn_spend(struct churn *churn, uint64_t now_ns, uint64_t spent_ns);

/* How long the next look has to wait; 0 for not at all. */
uint64_t churn_delay_ns(struct churn *churn, uint64_t now_ns);

/* True once when the limit is reached, and again only after the allowance was whole meanwhile. */
bool churn_begins_to_bite(struct churn *churn, uint64_t now_ns);

#endif
