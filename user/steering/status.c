/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/status.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "kernel/features.h"
#include "kernel/iterate.h"
#include "kernel/pins.h"
#include "kernel/values.h"
#include "steering/pinned.h"
#include "steering/place.h"
#include "steering/scan.h"

#include <errno.h>
#include <string.h>

/* Where one group's figures come from. All borrowed. */
struct source {
	const struct tables *tables;
	const struct pinned_group *pinned;
	const struct group *live; /* NULL if the group is gone */
};

/* Read while it moves, a sum can be short of zero for a moment. */
static uint64_t load_held(const struct load *load)
{
	return load->opened > load->closed ? load->opened - load->closed : 0;
}

uint32_t slow_start_percent(const struct settings *settings, uint64_t ramp_ns, uint64_t now_ns)
{
	uint64_t age_ns = now_ns > ramp_ns ? now_ns - ramp_ns : 0;

	/* As in bpf/choose.h: who was there at the attach needs none. */
	if (ramp_ns <= settings->attached_ns || age_ns >= settings->slow_start_ns)
		return 100;
	return (uint32_t)(age_ns * 100 / settings->slow_start_ns);
}

static void fill_live(const struct group *live, struct status_listener *listener)
{
	size_t i;

	listener->gone = true;
	for (i = 0; live && i < live->nr_listeners; i++) {
		const struct listener *found = &live->listeners[i];

		if (found->cookie != listener->cookie)
			continue;
		listener->gone = false;
		listener->pid = found->pid;
		memcpy(listener->comm, found->comm, sizeof(listener->comm));
		listener->state = found->state;
		listener->half_open = found->half_open;
		listener->queued = found->queued;
		listener->backlog = found->backlog;
	}
}

/* A worker was found busy in each of a row of looks; if the last one is older, nobody looks. */
#define LOOK_IS_RECENT_NS 1000000000

static uint64_t ms_since(uint64_t now_ns, uint64_t then_ns)
{
	return then_ns && now_ns > then_ns ? (now_ns - then_ns) / 1000000 : 0;
}

/* What looks at the listener have seen, beside its state at this moment. */
static void fill_watch(const struct member *member, struct status_listener *listener)
{
	uint64_t now_ns = clock_now_ns();
	bool is_away = listener->state == STATE_BUSY || listener->state == STATE_UNATTENDED;

	listener->nr_stuck = member->nr_stuck;
	listener->nr_rescues = member->nr_rescues;
	if (member->head)
		listener->head_ms = ms_since(now_ns, member->head_since_ns);
	if (member->stuck_ns) {
		listener->state = STATE_STUCK;
		listener->state_ms = ms_since(now_ns, member->stuck_ns);
	} else if (is_away && now_ns - member->away_seen_ns < LOOK_IS_RECENT_NS) {
		listener->state_ms = ms_since(now_ns, member->away_since_ns);
	}
}

static int fill_counters(const struct source *source, const struct member *member,
			 struct status_listener *listener)
{
	struct worker worker;
	struct load load;
	int err;

	err = value_read(source->tables->workers, member->worker, &worker);
	if (!err)
		err = load_read(source->tables->worker_load, member->worker, &load);
	if (!err)
		err = load_read(source->tables->listener_load, member->listener, &listener->load);
	if (err)
		return err;
	listener->worker = member->worker;
	listener->slow_start_percent =
		slow_start_percent(&source->pinned->settings, member->ramp_ns, clock_now_ns());
	listener->pid = worker.pid;
	listener->weight = worker.weight;
	listener->draining = worker.flags & WORKER_DRAINING;
	memcpy(listener->comm, worker.comm, sizeof(listener->comm));
	listener->worker_held = load_held(&load);
	listener->held = load_held(&listener->load);
	return 0;
}

/* A listener that was shut and listens again, by itself or by a rescue that was killed, has lost its slot. */
static bool has_slot(const struct source *source, const struct status_listener *listener)
{
	uint64_t cookie;

	return !listener->gone &&
	       !slot_read(source->pinned->maps.listeners, listener->slot, &cookie) &&
	       cookie == listener->cookie;
}

static int fill_listeners(const struct source *source, struct status_group *group)
{
	struct member *members CLEANUP(cleanup_free) = calloc(MAX_SLOTS, sizeof(*members));
	uint32_t slot, nr_present = 0, result;
	int err;

	/* One look more, so that what is shown is true where nobody else looks. */
	group_maps_survey(&source->pinned->maps, &result);
	group->listeners = calloc(MAX_SLOTS, sizeof(*group->listeners));
	if (!members || !group->listeners)
		return -ENOMEM;
	err = values_read(source->pinned->maps.members, members, sizeof(*members), MAX_SLOTS);
	for (slot = 0; slot < MAX_SLOTS && !err; slot++) {
		struct status_listener *listener = &group->listeners[group->nr_listeners];

		if (!members[slot].cookie)
			continue;
		listener->slot = slot;
		listener->cookie = members[slot].cookie;
		err = fill_counters(source, &members[slot], listener);
		fill_live(source->live, listener);
		fill_watch(&members[slot], listener);
		nr_present += has_slot(source, listener);
		group->nr_listeners++;
	}
	if (source->live && source->live->size > nr_present)
		group->nr_missing = source->live->size - nr_present;
	return err;
}

static int fill_group(const struct source *source, struct status_group *group)
{
	const struct settings *settings = &source->pinned->settings;
	uint32_t outcome;
	int err = 0;

	settings_name(settings, group->name);
	memcpy(group->address, settings->address, sizeof(group->address));
	group->family = settings->family;
	group->port = settings->port;
	group->netns = settings->netns;
	group->policy = (enum policy)settings->policy;
	group->settings = *settings;
	group->attached_ns = settings->attached_ns;
	group->steered = source->live && source->live->ours;
	for (outcome = 0; outcome < NR_OUTCOMES && !err; outcome++)
		err = counter_read(source->pinned->maps.counters, outcome,
				   &group->outcomes[outcome]);
	return err ? err : fill_listeners(source, group);
}

int status_group_read(const struct tables *tables, const struct pinned_group *pinned,
		      const struct inventory *inventory, struct status_group *ret_group)
{
	struct source source = { tables, pinned, pinned_live(pinned, inventory) };
	struct status_group group = {};
	int err = fill_group(&source, &group);

	if (err)
		status_group_done(&group);
	else
		*ret_group = group;
	return err;
}

void status_group_done(struct status_group *group)
{
	free(group->listeners);
	*group = (struct status_group){};
}

static int compare_groups(const void *left, const void *right)
{
	const struct status_group *a = left, *b = right;

	if (a->netns != b->netns)
		return a->netns < b->netns ? -1 : 1;
	if (a->port != b->port)
		return a->port < b->port ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int fill_status(const struct pinned *pinned, const struct pinned_group *only,
		       const struct inventory *inventory, const struct tables *tables,
		       struct status *status)
{
	size_t i;
	int err = 0;

	status->groups = calloc(pinned->nr_groups + 1, sizeof(*status->groups));
	if (!status->groups)
		return -ENOMEM;
	for (i = 0; i < pinned->nr_groups && !err; i++) {
		const struct pinned_group *group = &pinned->groups[i];

		if (!group->whole || (only && only != group))
			continue;
		err = status_group_read(tables, group, inventory,
					&status->groups[status->nr_groups]);
		status->nr_groups += !err;
	}
	if (!err)
		qsort(status->groups, status->nr_groups, sizeof(*status->groups), compare_groups);
	return err;
}

static int status_of_pins(const struct group_spec *spec, const struct pinned *pinned,
			  const struct inventory *inventory, struct status *status,
			  struct failure *failure)
{
	struct tables tables __attribute__((cleanup(tables_done))) = TABLES_NONE;
	const struct pinned_group *only = NULL;
	int err;

	err = spec ? pinned_find(pinned, spec, inventory, &only, failure) :
		     pinned_check(pinned, failure);
	if (err)
		return err;
	err = tables_open(&tables, failure);
	if (err)
		return err == -ENOENT ? 0 : err;
	err = fill_status(pinned, only, inventory, &tables, status);
	if (!err)
		err = value_read(tables.audits, 0, &status->audits);
	if (err)
		return failure_set(failure, EXIT_FAILED, -err,
				   "cannot read the maps below " PINS_PATH ": %s", strerror(-err));
	return 0;
}

int status_read_with(struct inspector *inspector, const struct group_spec *spec,
		     struct status *ret_status, struct failure *failure)
{
	struct inventory inventory CLEANUP(inventory_done) = {};
	struct pinned pinned CLEANUP(pinned_done) = {};
	struct status status = {};
	int err;

	err = inventory_scan_with(inspector, &inventory, failure);
	if (!err)
		err = pinned_open(&pinned, failure);
	if (!err)
		err = status_of_pins(spec, &pinned, &inventory, &status, failure);
	if (err)
		status_done(&status);
	else
		*ret_status = status;
	return err;
}

int status_read(const struct group_spec *spec, struct status *ret_status, struct failure *failure)
{
	struct inspector *inspector = NULL;
	int err;

	err = pins_check(failure);
	if (!err)
		err = rights_check(PURPOSE_LOOK, failure);
	if (!err)
		err = inspector_new(&inspector, failure);
	if (!err)
		err = status_read_with(inspector, spec, ret_status, failure);
	inspector_free(inspector);
	return err;
}

void status_done(struct status *status)
{
	size_t i;

	for (i = 0; i < status->nr_groups; i++)
		status_group_done(&status->groups[i]);
	free(status->groups);
	*status = (struct status){};
}
