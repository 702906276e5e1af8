/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A rescue is killed before each of its system calls, or the child that it forks is, or both at once:
 * the listener ends listening in its slot, and no client is lost.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "kernel/values.h"
#include "support/daemon.h"
#include "support/hanging.h"
#include "support/sandbox.h"
#include "support/supervised.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

/* Connections that wait at each step. */
#define NR_QUEUED 3

/* How long one sweep over the steps may take. A slower machine leaves steps out, and says so. */
#define SWEEP_NS 15000000000ull
#define FIRST_STRIDE 8
#define STEPS_MAX 100

TestSuite(rescue_crash, .init = scene_enter, .timeout = 2.0 * TEST_SECONDS);

enum victim {
	VICTIM_CALLER, /* where any of the two stops */
	VICTIM_CHILD, /* where the child stops */
	VICTIM_BOTH, /* where the child stops */
};

struct sweep {
	const char *name;
	enum victim victim;
};

static void start(const struct hanging *hanging, struct supervised *ret_supervised)
{
	supervised_start(ret_supervised, "rescue", hanging->scene.group, hanging->pid, "--netns",
			 hanging->scene.netns);
}

static bool counts(const struct sweep *sweep, const struct supervised *supervised)
{
	return sweep->victim == VICTIM_CALLER || supervised_is_child(supervised);
}

/* Lets it make its steps up to this one. False if it ends before. */
static bool run_to(const struct sweep *sweep, struct supervised *supervised, size_t step)
{
	size_t done = 0;

	while (supervised_next(supervised)) {
		done += counts(sweep, supervised);
		if (done == step)
			return true;
		supervised_let(supervised);
	}
	return false;
}

static void kill_victims(const struct sweep *sweep, const struct supervised *supervised)
{
	if (sweep->victim != VICTIM_CHILD)
		cr_assert_eq(kill(supervised->program.pid, SIGKILL), 0);
	if (sweep->victim != VICTIM_CALLER)
		cr_assert_eq(kill(supervised->pid, SIGKILL), 0);
	if (supervised->pid != supervised->program.pid && sweep->victim == VICTIM_CALLER)
		supervised_let(supervised);
}

static bool slot_is_filled(const struct hanging *hanging)
{
	uint64_t cookie;

	return !slot_read(hanging->steered.maps.listeners, hanging->slot, &cookie) &&
	       cookie == hanging->cookie;
}

static void run_plain(const struct hanging *hanging, const char *command, const char *worker,
		      const char *what)
{
	struct said said CLEANUP(said_done) = {};

	program_run(&said, command, hanging->scene.group, "--netns", hanging->scene.netns, worker);
	cr_assert_eq(said.code, EXIT_DONE, "%s, then %s: %s", what, command, said.error);
}

/* Where the caller lives, it mends everything itself. Else the next attach does, or the next rescue. */
static void expect_mended(struct hanging *hanging, const struct sweep *sweep, size_t step,
			  const struct member *before, const char *what)
{
	if (sweep->victim != VICTIM_CHILD && step % 2)
		run_plain(hanging, "attach", NULL, what);
	else if (sweep->victim != VICTIM_CHILD)
		run_plain(hanging, "rescue", hanging->pid, what);
	cr_assert(slot_is_filled(hanging), "%s", what);
	expect_same_member(hanging, before, what);
	/* What has not moved yet moves now. */
	run_plain(hanging, "rescue", hanging->pid, what);
	expect_answered_by_others(hanging, what);
}

static bool kill_at(struct hanging *hanging, const struct sweep *sweep, size_t step)
{
	struct said said CLEANUP(said_done) = {};
	struct supervised supervised;
	struct member before;
	char what[96];
	bool was_killed;

	hanging_queue(hanging, NR_QUEUED);
	hanging_member(hanging, &before);
	start(hanging, &supervised);
	was_killed = run_to(sweep, &supervised, step);
	snprintf(what, sizeof(what), "%s before step %zu, %s", sweep->name, step,
		 supervised_call_name(&supervised));
	if (was_killed)
		kill_victims(sweep, &supervised);
	if (sweep->victim == VICTIM_BOTH)
		cr_expect_eq(slot_is_filled(hanging), supervised.number == SYS_shutdown, "%s",
			     what);
	supervised_run_on(&supervised);
	supervised_wait(&supervised, &said);
	expect_mended(hanging, sweep, step, &before, what);
	return was_killed;
}

static size_t count_steps(struct hanging *hanging, const struct sweep *sweep)
{
	struct said said CLEANUP(said_done) = {};
	struct supervised supervised;
	size_t count = 0;

	start(hanging, &supervised);
	while (supervised_next(&supervised)) {
		count += counts(sweep, &supervised);
		supervised_let(&supervised);
	}
	supervised_wait(&supervised, &said);
	cr_assert_eq(said.code, EXIT_DONE, "%s", said.error);
	expect_answered_by_others(hanging, sweep->name);
	return count;
}

/* Coarse first and then ever finer, so that what time there is goes over the whole run. */
static void run_sweep(const struct sweep *sweep)
{
	size_t nr_steps, stride, step, count = 0;
	bool is_done[STEPS_MAX] = {};
	struct hanging hanging;
	uint64_t begun_ns;

	hanging_start(&hanging, NR_QUEUED);
	nr_steps = count_steps(&hanging, sweep);
	cr_assert_gt(nr_steps, (size_t)0);
	cr_assert_lt(nr_steps, (size_t)STEPS_MAX);
	begun_ns = clock_now_ns();
	for (stride = FIRST_STRIDE; stride; stride /= 2)
		for (step = 1; step <= nr_steps; step += stride) {
			if (is_done[step] || (step > 1 && clock_now_ns() - begun_ns > SWEEP_NS))
				continue;
			/* The last steps are an audit's, which mends now more and now less. */
			count += kill_at(&hanging, sweep, step);
			is_done[step] = true;
		}
	/* No warning where time was short: the runner takes one for a failure. */
	cr_log_info("%s: killed before %zu of %zu steps\n", sweep->name, count, nr_steps);
	hanging_done(&hanging);
}

Test(rescue_crash, a_rescue_killed_at_any_call_leaves_a_listener_that_listens_and_loses_no_client)
{
	run_sweep(&(struct sweep){ "the caller", VICTIM_CALLER });
}

Test(rescue_crash, a_caller_whose_child_is_killed_does_the_rest_itself)
{
	run_sweep(&(struct sweep){ "the child", VICTIM_CHILD });
}

Test(rescue_crash, what_is_left_shut_when_both_are_killed_is_finished_by_the_next_who_comes)
{
	run_sweep(&(struct sweep){ "both", VICTIM_BOTH });
}

/* Leaves the listener shut, with what was in its queue moved. */
static void leave_shut(struct hanging *hanging)
{
	static const struct sweep both = { "both", VICTIM_BOTH };
	struct said said CLEANUP(said_done) = {};
	struct supervised supervised;

	hanging_start(hanging, NR_QUEUED);
	start(hanging, &supervised);
	while (supervised_next(&supervised) && supervised.number != SYS_listen)
		supervised_let(&supervised);
	kill_victims(&both, &supervised);
	supervised_run_on(&supervised);
	supervised_wait(&supervised, &said);
	cr_assert_not(slot_is_filled(hanging));
	expect_answered_by_others(hanging, "before it is mended");
}

static bool slot_of_hanging_is_filled(void *hanging)
{
	return slot_is_filled(hanging);
}

Test(rescue_crash, a_daemon_that_starts_finishes_a_rescue_that_was_killed)
{
	struct said said CLEANUP(said_done) = {};
	struct hanging hanging;
	struct member before;
	struct program daemon;

	leave_shut(&hanging);
	hanging_member(&hanging, &before);
	daemon_start(&daemon, NULL, &hanging.scene, NULL);
	cr_expect(wait_until(slot_of_hanging_is_filled, &hanging, DEADLINE_MS));
	daemon_stop(&daemon, &said);
	expect_same_member(&hanging, &before, "run");
	hanging_done(&hanging);
}

Test(rescue_crash, a_detach_finishes_a_rescue_that_was_killed)
{
	struct footprint footprint;
	struct hanging hanging;

	leave_shut(&hanging);
	footprint_look(&hanging.scene.servers.endpoint, &footprint);
	cr_expect_eq(footprint.nr_listeners, NR_HANGING_WORKERS - 1);
	run_plain(&hanging, "detach", NULL, "left shut");
	footprint_look(&hanging.scene.servers.endpoint, &footprint);
	cr_expect_eq(footprint.nr_listeners, NR_HANGING_WORKERS);
	hanging_done(&hanging);
}

/* The worker ends, and its listener with it: nobody can finish anything, and nobody has to. */
Test(rescue_crash, a_rescue_of_a_worker_that_ended_meanwhile_is_forgotten)
{
	struct hanging hanging;

	leave_shut(&hanging);
	servers_kill(&hanging.scene.servers, 0, SIGKILL);
	run_plain(&hanging, "attach", NULL, "ended");
	clients_visit(&hanging.scene.servers.endpoint, 6, 1, END_WORKER_FIRST);
	clients_done(&hanging.held);
	steered_done(&hanging.steered);
	servers_stop(&hanging.scene.servers);
}
