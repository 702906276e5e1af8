/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What has changed between two looks at the steered groups, one change at a time. Pure. Listeners that
 * join and leave come with their exact time from the kernel (kernel/witness.h) and have kinds here too,
 * so that a log has one type for all its lines.
 */
#ifndef SOCKSTEER_STEERING_CHANGES_H
#define SOCKSTEER_STEERING_CHANGES_H

#include "socksteer/types.h"
#include "steering/setting.h"
#include "steering/status.h"

enum change_kind {
	CHANGE_WATCHING, /* the log begins; count is the number of steered groups */
	CHANGE_LOST, /* count records of listeners found no room; what they did is not known */
	CHANGE_REPAIRED, /* an audit has charged or mended count connections */
	/* Of a listener: cookie, pid and comm are set, slot where it has one. */
	CHANGE_JOINED, /* it listens from now on */
	CHANGE_LEFT, /* it does not any more */
	CHANGE_PLACED, /* it has a slot from now on */
	CHANGE_DRAINED,
	CHANGE_RESUMED,
	CHANGE_WEIGHT, /* from, to */
	CHANGE_STUCK, /* it does not accept; count connections wait in its queue */
	CHANGE_RECOVERED, /* it takes connections again */
	CHANGE_RESCUED, /* its queue was moved to other workers, count times since the last look */
	/* Of a group. */
	CHANGE_STEERED, /* our program is attached; to is the policy */
	CHANGE_DETACHED,
	CHANGE_REPLACED, /* another program has taken the place of ours, or none */
	CHANGE_CLOSED, /* its last listener is gone, and our program with it */
	CHANGE_SETTING, /* setting, from, to */
	CHANGE_IDLE, /* there is no steered group any more */
	NR_CHANGES,
};

struct change {
	enum change_kind kind;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	char group[ADDRESS_TEXT_SIZE]; /* "" if it is of no group */
	uint32_t netns;
	uint64_t cookie; /* 0 if it is of no listener */
	bool has_slot;
	uint32_t slot;
	uint32_t pid; /* of the worker, 0 if it is not known */
	char comm[COMM_SIZE]; /* not escaped */
	const char *setting; /* its name; static */
	char from[SETTING_TEXT_SIZE];
	char to[SETTING_TEXT_SIZE];
	uint64_t count;
};

/* Called for each change; the change is only valid during the call. */
typedef void (*change_handler)(const struct change *change, void *argument);

/* Hands over what is different in after, a look at time_ns: groups first to last, each by slot. */
void status_compare(const struct status *before, const struct status *after, uint64_t time_ns,
		    change_handler handler, void *argument);

/*
 * True if a group of both looks has just lost its program. An attach or a detach that is under way
 * looks like that for a moment, so the next look decides.
 */
bool status_is_settling(const struct status *before, const struct status *after);

/* The listener with this cookie, and its group; NULL if no steered group has it. Borrowed. */
const struct status_listener *status_find_listener(const struct status *status, uint64_t cookie);

#endif
