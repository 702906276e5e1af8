/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/drain.h"
#include "base/cleanup.h"
#include "kernel/iterate.h"
#include "kernel/pins.h"
#include "kernel/values.h"
#include "steering/roster.h"
#include "steering/scan.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/pidfd.h>

struct drain {
	uint32_t row;
	uint32_t generation; /* of the row; another one means another owner */
	int process; /* pidfd, owned; -1 if the process is not in sight */
	bool ended; /* it had ended before it could be watched */
	struct tables tables; /* owned */
	struct inspector *inspector; /* owned; NULL until it is needed */
};

int drain_new(const struct worker_report *report, struct drain **ret_drain, struct failure *failure)
{
	struct drain *drain CLEANUP(drain_free) = calloc(1, sizeof(*drain));
	int err;

	if (!drain)
		return failure_set(failure, EXIT_FAILED, ENOMEM, "out of memory");
	drain->row = report->row;
	drain->generation = report->after.generation;
	drain->tables = TABLES_NONE;
	drain->process = pidfd_open((pid_t)report->after.pid, 0);
	drain->ended = drain->process < 0 && errno == ESRCH;
	err = tables_open(&drain->tables, failure);
	if (err && failure->code == EXIT_DONE)
		return failure_set(failure, EXIT_FAILED, -err,
				   "the pins below " PINS_PATH " were removed meanwhile");
	if (!err)
		*ret_drain = TAKE_PTR(drain);
	return err;
}

void drain_free(struct drain **drain)
{
	if (!*drain)
		return;
	inspector_free((*drain)->inspector);
	tables_done(&(*drain)->tables);
	cleanup_fd(&(*drain)->process);
	free(*drain);
	*drain = NULL;
}

int drain_end_fd(const struct drain *drain)
{
	return drain->process;
}

static bool has_ended(const struct drain *drain)
{
	struct pollfd process = { .fd = drain->process, .events = POLLIN };

	return drain->ended || (drain->process >= 0 && poll(&process, 1, 0) == 1);
}

/* Kept up to date by whoever adds listeners and removes them, so it is read each time. */
static bool is_of_worker(const struct roster *roster, uint32_t worker, uint64_t cookie)
{
	uint32_t row;

	for (row = 0; row < MAX_LISTENERS; row++)
		if (roster->listeners[row].cookie == cookie)
			return roster->listeners[row].worker == worker;
	return false;
}

static void sum_live(const struct inventory *inventory, const struct roster *roster,
		     uint32_t worker, struct drain_state *state)
{
	size_t i, j;

	for (i = 0; i < inventory->nr_groups; i++) {
		const struct group *group = &inventory->groups[i];

		for (j = 0; j < group->nr_listeners; j++) {
			const struct listener *listener = &group->listeners[j];

			if (!is_of_worker(roster, worker, listener->cookie))
				continue;
			state->half_open += listener->half_open;
			state->queued += listener->queued;
		}
	}
}

static int maps_failed(int err, struct failure *failure)
{
	return failure_set(failure, EXIT_FAILED, -err,
			   "cannot read the maps below " PINS_PATH ": %s", strerror(-err));
}

static int read_live(struct drain *drain, struct drain_state *state, struct failure *failure)
{
	struct inventory inventory CLEANUP(inventory_done) = {};
	struct roster *roster CLEANUP(cleanup_free) = NULL;
	int err = 0;

	if (!drain->inspector)
		err = inspector_new(&drain->inspector, failure);
	if (!err)
		err = inventory_scan_with(drain->inspector, &inventory, failure);
	if (err)
		return err;
	err = roster_read(&drain->tables, &roster);
	if (err)
		return maps_failed(err, failure);
	sum_live(&inventory, roster, drain->row, state);
	return 0;
}

/* Read while it moves, a sum can be short of zero for a moment. */
static int read_held(const struct drain *drain, uint64_t *ret_held)
{
	struct load load;
	int err = load_read(drain->tables.worker_load, drain->row, &load);

	if (!err)
		*ret_held = load.opened > load.closed ? load.opened - load.closed : 0;
	return err;
}

/* It holds nothing as far as is counted. Counted once more last: a handshake may have ended meanwhile. */
static int look_closely(struct drain *drain, struct drain_state *state, struct failure *failure)
{
	int err = read_live(drain, state, failure);

	if (err)
		return err;
	err = read_held(drain, &state->held);
	if (err)
		return maps_failed(err, failure);
	if (!state->held && !state->half_open && !state->queued)
		state->stage = DRAIN_EMPTY;
	return 0;
}

int drain_look(struct drain *drain, struct drain_state *ret_state, struct failure *failure)
{
	struct drain_state state = {};
	struct worker worker;
	int err;

	err = value_read(drain->tables.workers, drain->row, &worker);
	if (!err)
		err = read_held(drain, &state.held);
	if (err)
		return maps_failed(err, failure);
	if (has_ended(drain))
		state = (struct drain_state){ .stage = DRAIN_ENDED };
	else if (worker.generation != drain->generation)
		state.stage = DRAIN_LOST;
	else if (!(worker.flags & WORKER_DRAINING))
		state.stage = DRAIN_RESUMED;
	else if (!state.held)
		err = look_closely(drain, &state, failure);
	if (!err)
		*ret_state = state;
	return err;
}
