/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/roster.h"
#include "base/cleanup.h"
#include "kernel/values.h"
#include "socksteer/policy.h"

#include <errno.h>
#include <string.h>

int roster_read(const struct tables *tables, struct roster **ret_roster)
{
	struct roster *roster CLEANUP(cleanup_free) = calloc(1, sizeof(*roster));
	int err;

	if (!roster)
		return -ENOMEM;
	roster->tables = tables;
	err = values_read(tables->workers, roster->workers, sizeof(*roster->workers), MAX_WORKERS);
	if (!err)
		err = values_read(tables->listener_info, roster->listeners,
				  sizeof(*roster->listeners), MAX_LISTENERS);
	if (!err)
		*ret_roster = TAKE_PTR(roster);
	return err;
}

/* The low 48 bits of a kernel address are unique, and short enough for every reader of JSON. */
static uint64_t event_loop_of(const struct listener *listener)
{
	return listener->event_loop & ((1ull << 48) - 1);
}

bool worker_serves(const struct worker *worker, const struct listener *listener)
{
	return worker->pid == listener->pid && worker->event_loop == event_loop_of(listener);
}

static int worker_start(struct roster *roster, const struct listener *listener, uint32_t row)
{
	struct worker worker = {
		.pid = listener->pid,
		.weight = DEFAULT_WEIGHT,
		.cost = policy_cost(DEFAULT_WEIGHT),
		.generation = roster->workers[row].generation + 1,
		.event_loop = event_loop_of(listener),
	};
	int err;

	memcpy(worker.comm, listener->comm, sizeof(worker.comm));
	err = load_clear(roster->tables->worker_load, row);
	if (!err)
		err = value_write(roster->tables->workers, row, &worker);
	if (!err)
		roster->workers[row] = worker;
	return err;
}

int roster_take_worker(struct roster *roster, const struct listener *listener, bool exclusive,
		       uint32_t *ret_row)
{
	uint32_t row, free_row = MAX_WORKERS;
	int err;

	for (row = 0; row < MAX_WORKERS; row++) {
		if (!exclusive && worker_serves(&roster->workers[row], listener)) {
			*ret_row = row;
			return 0;
		}
		if (!roster->workers[row].pid && free_row == MAX_WORKERS)
			free_row = row;
	}
	if (free_row == MAX_WORKERS)
		return -ENOSPC;
	err = worker_start(roster, listener, free_row);
	if (!err)
		*ret_row = free_row;
	return err;
}

static int listener_write(struct roster *roster, uint32_t row, const struct listener_info *info)
{
	int err = value_write(roster->tables->listener_info, row, info);

	if (!err)
		roster->listeners[row] = *info;
	return err;
}

int roster_take_listener(struct roster *roster, const struct listener *listener, uint32_t worker,
			 uint32_t *ret_row)
{
	struct listener_info info = { .cookie = listener->cookie, .worker = worker };
	uint32_t row;
	int err;

	for (row = 0; row < MAX_LISTENERS; row++)
		if (!roster->listeners[row].cookie)
			break;
	if (row == MAX_LISTENERS)
		return -ENOSPC;
	info.generation = roster->listeners[row].generation + 1;
	err = load_clear(roster->tables->listener_load, row);
	if (!err)
		err = listener_write(roster, row, &info);
	if (!err)
		*ret_row = row;
	return err;
}

int roster_move_listener(struct roster *roster, uint32_t row, uint32_t worker)
{
	struct listener_info info = roster->listeners[row];

	info.worker = worker;
	return listener_write(roster, row, &info);
}

int roster_free_listener(struct roster *roster, uint32_t row)
{
	struct listener_info info = { .generation = roster->listeners[row].generation + 1 };

	return listener_write(roster, row, &info);
}

static bool worker_has_listener(const struct roster *roster, uint32_t worker)
{
	uint32_t row;

	for (row = 0; row < MAX_LISTENERS; row++)
		if (roster->listeners[row].cookie && roster->listeners[row].worker == worker)
			return true;
	return false;
}

int roster_free_unused_workers(struct roster *roster)
{
	uint32_t row;
	int err = 0;

	for (row = 0; row < MAX_WORKERS && !err; row++) {
		struct worker free_row = { .generation = roster->workers[row].generation + 1 };

		if (!roster->workers[row].pid || worker_has_listener(roster, row))
			continue;
		err = value_write(roster->tables->workers, row, &free_row);
		if (!err)
			roster->workers[row] = free_row;
	}
	return err;
}

struct conn_owner roster_owner(const struct roster *roster, uint32_t worker, uint32_t listener)
{
	return (struct conn_owner){
		.worker = worker,
		.worker_generation = roster->workers[worker].generation,
		.listener = listener,
		.listener_generation = roster->listeners[listener].generation,
		.state = OWNER_NEW,
	};
}
