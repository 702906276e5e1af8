/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the pinned maps and the live sockets say at this moment, for all views. Reads only.
 */
#ifndef SOCKSTEER_STEERING_STATUS_H
#define SOCKSTEER_STEERING_STATUS_H

#include "base/failure.h"
#include "base/text.h"
#include "socksteer/types.h"
#include "steering/inventory.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct status_listener {
	uint32_t slot;
	uint64_t cookie;
	uint32_t worker; /* its row of the table of workers */
	uint32_t pid; /* of the worker */
	char comm[COMM_SIZE]; /* not escaped */
	uint32_t state; /* enum worker_state */
	uint64_t state_ms; /* since when it is stuck, busy or unattended; 0 where that is not known */
	uint64_t head_ms; /* how long the first connection in its queue has been seen waiting */
	uint32_t nr_stuck; /* how often it was found stuck */
	uint32_t nr_rescues;
	bool draining;
	bool gone; /* it closed; its slot is empty, and the next attach frees it */
	uint32_t weight;
	uint32_t slow_start_percent; /* how much of its share it has reached since it joined */
	uint64_t held; /* this listener's own connections */
	uint64_t worker_held; /* the worker's, over all its listeners: what the decision compares */
	uint32_t half_open;
	uint32_t queued;
	uint32_t backlog;
	struct load load; /* this listener's counters, summed over the CPUs */
};

struct status_group {
	char name[ADDRESS_TEXT_SIZE];
	uint8_t address[16];
	uint32_t family;
	uint32_t port;
	uint32_t netns;
	bool steered; /* our program is attached to the group right now */
	uint32_t nr_missing; /* listeners without a slot: until attach is run again, hash serves all */
	enum policy policy;
	struct settings settings; /* all of them, for steering/setting.h */
	uint64_t attached_ns; /* CLOCK_MONOTONIC */
	uint64_t outcomes[NR_OUTCOMES];
	struct status_listener *listeners; /* owned, by slot */
	size_t nr_listeners;
};

struct inspector;
struct pinned_group;
struct tables;

struct status {
	struct status_group *groups; /* owned, sorted like an inventory */
	size_t nr_groups;
	struct audits audits; /* of all groups; zeros where none is steered */
};

/*
 * Reads the steered groups that match spec, or all if spec is NULL. A spec that matches no steered
 * group fails with EXIT_NOTHING; none at all without a spec is an empty status.
 */
int status_read(const struct group_spec *spec, struct status *ret_status, struct failure *failure);

/* The same with an iterator that is loaded already, for who looks again and again. */
int status_read_with(struct inspector *inspector, const struct group_spec *spec,
		     struct status *ret_status, struct failure *failure);
void status_done(struct status *status);

/* One whole group, by who has all of it open. 0 or -errno. Ended with status_group_done(). */
int status_group_read(const struct tables *tables, const struct pinned_group *pinned,
		      const struct inventory *inventory, struct status_group *ret_group);
void status_group_done(struct status_group *group);

/* How much of its slow start a listener has behind it: 100 without one, or after it. */
uint32_t slow_start_percent(const struct settings *settings, uint64_t ramp_ns, uint64_t now_ns);

#endif
