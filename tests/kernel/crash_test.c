/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * socksteer is killed, or stopped, in the midst of what it does: the group serves on, and the next
 * run puts everything right. Also workers that die during an attach, and a second run beside it.
 */
#include "base/cleanup.h"
#include "support/clients.h"
#include "support/sandbox.h"
#include "support/scene.h"
#include "support/steered.h"
#include "support/traced.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

/* Few, since each adds some steps; more than one, since what is half done is half steered. */
#define NR_WORKERS 2
#define NR_WORKERS_TEXT "2"

/* How long one sweep over the steps may take. A slower machine leaves steps out, and says so. */
#define SWEEP_SECONDS 15

/* What even the slowest machine tries. */
#define STEPS_MIN 2

#define FIRST_STRIDE 32

/* Far more than any run makes. */
#define STEPS_MAX 500

#define NR_VISITS 6

TestSuite(crash, .init = scene_enter, .timeout = 2.0 * TEST_SECONDS);

static double now_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void detach_all(void)
{
	program_succeeds("detach", "--all");
}

static void expect_serving(const struct scene *scene)
{
	clients_visit(&scene->servers.endpoint, NR_VISITS, 1, END_WORKER_FIRST);
}

/*
 * Expects that every worker is a member, or every one but this one, that there are no other
 * members, and that connections are steered.
 */
static void expect_steered(const struct scene *scene, size_t without, const char *what)
{
	size_t nr_workers = scene->servers.nr_workers, worker;
	struct steered steered;
	struct counts before;

	steered_open(&steered, &scene->servers.endpoint);
	for (worker = 0; worker < nr_workers; worker++)
		if (worker != without)
			slot_of_pid(&steered, scene->servers.pids[worker]);
	cr_expect_eq(steered_nr_members(&steered), nr_workers - (without < nr_workers), "%s", what);
	steered_count(&steered, &before);
	expect_serving(scene);
	expect_outcomes(&steered, &before, (struct outcomes){ .selected = NR_VISITS });
	steered_done(&steered);
}

/*
 * Lets a run make this many steps. A call that fails changes nothing and is no step. True if it
 * made them and stands after the last, false if it ended before.
 */
static bool make_steps(struct traced *traced, size_t nr_steps)
{
	size_t done = 0;

	while (done < nr_steps && traced_next(traced)) {
		traced_do_call(traced);
		done += traced->result >= 0;
	}
	return done == nr_steps && !traced->has_ended;
}

/* One thing that is killed at each of its steps, and what is done about it. */
struct sweep {
	const char *name;
	size_t first_step; /* two sweeps share the steps: one takes the odd ones */
	bool is_detach; /* else it is an attach that is killed */
	void (*mend)(const struct scene *scene, const char *what);
};

static void mend_by_attach(const struct scene *scene, const char *what)
{
	scene_attach(scene);
	expect_steered(scene, EVERY_WORKER, what);
	detach_all();
}

static void mend_by_detach_all(const struct scene *scene, const char *what)
{
	(void)scene;
	(void)what;
	detach_all();
}

static void start(const struct sweep *sweep, const struct scene *scene, struct traced *ret_traced)
{
	if (sweep->is_detach)
		scene_attach(scene);
	traced_start(ret_traced, sweep->is_detach ? "detach" : "attach", scene->group, "--netns",
		     scene->netns);
}

static void kill_at(const struct sweep *sweep, const struct scene *scene, size_t step)
{
	struct traced traced;
	char what[64];
	bool was_killed;

	start(sweep, scene, &traced);
	was_killed = make_steps(&traced, step);
	if (was_killed) {
		snprintf(what, sizeof(what), "step %zu, %s", step, call_name(&traced));
		traced_kill(&traced);
	} else {
		struct said said CLEANUP(said_done) = {};

		snprintf(what, sizeof(what), "after step %zu", step - 1);
		traced_run_on(&traced, &said);
		cr_expect_eq(said.code, EXIT_DONE, "%s: %s", what, said.error);
	}
	expect_serving(scene);
	sweep->mend(scene, what);
	expect_no_footprint(&scene->servers.endpoint, what);
}

static size_t count_steps(const struct sweep *sweep, const struct scene *scene)
{
	struct said said CLEANUP(said_done) = {};
	struct traced traced;
	size_t count = 0;

	start(sweep, scene, &traced);
	while (traced_next(&traced)) {
		traced_do_call(&traced);
		count += traced.result >= 0;
	}
	traced_run_on(&traced, &said);
	cr_assert_eq(said.code, EXIT_DONE, "%s", said.error);
	detach_all();
	return count;
}

/* Coarse first and then ever finer, so that what time there is goes over the whole run. */
static void run_sweep(const struct sweep *sweep)
{
	size_t nr_steps, stride, step, count = 0;
	bool is_done[STEPS_MAX] = {};
	struct scene scene;
	double begun;

	scene_start(&scene, "--workers", NR_WORKERS_TEXT);
	nr_steps = count_steps(sweep, &scene);
	cr_assert_lt(nr_steps, (size_t)STEPS_MAX);
	begun = now_seconds();
	for (stride = FIRST_STRIDE; stride >= 2; stride /= 2)
		for (step = sweep->first_step; step <= nr_steps; step += stride) {
			if (is_done[step] ||
			    (count >= STEPS_MIN && now_seconds() - begun > SWEEP_SECONDS))
				continue;
			kill_at(sweep, &scene, step);
			is_done[step] = true;
			count++;
		}
	/* No warning where time was short: the runner takes one for a failure. */
	cr_log(CR_LOG_INFO, "%s: killed after %zu of %zu steps, in %.1f s\n", sweep->name, count,
	       nr_steps, now_seconds() - begun);
}

/* Odd steps are put right in one way and even ones in the other, which is as good and half the time. */
Test(crash, an_attach_killed_after_any_odd_step_is_put_right_by_the_next_attach)
{
	run_sweep(&(struct sweep){ "attach, then attach", 1, false, mend_by_attach });
}

Test(crash, an_attach_killed_after_any_even_step_is_put_right_by_detach_all)
{
	run_sweep(&(struct sweep){ "attach, then detach --all", 2, false, mend_by_detach_all });
}

Test(crash, a_detach_killed_after_any_odd_step_is_put_right_by_the_next_attach)
{
	run_sweep(&(struct sweep){ "detach, then attach", 1, true, mend_by_attach });
}

Test(crash, a_detach_killed_after_any_even_step_is_put_right_by_detach_all)
{
	run_sweep(&(struct sweep){ "detach, then detach --all", 2, true, mend_by_detach_all });
}

static bool puts_a_second_listener(const struct traced *traced)
{
	static size_t nr_copies;

	return call_copies_listener(traced) && ++nr_copies % 2 == 0;
}

/* Every moment at which a worker can be missed: each is the first call of its kind. */
static const struct {
	const char *name;
	bool (*holds)(const struct traced *traced);
	bool after; /* the call has been made */
	bool is_within; /* some listeners have had their turn and others not */
} moments[] = {
	{ "before anything is pinned", call_pins, false, false },
	{ "before the first listener is copied", call_copies_listener, false, false },
	{ "when the first listener was copied", call_copies_listener, true, true },
	{ "when one listener has its slot", puts_a_second_listener, false, true },
	{ "before the program is attached", call_attaches_program, false, false },
	{ "when the program was attached", call_attaches_program, true, false },
};

#define FIRST_MOMENT_WITHIN 2

/* Attaches, and ends a worker at this moment. */
static void die_during_attach(const struct scene *scene, size_t moment, size_t worker,
			      struct said *ret_said)
{
	struct traced traced;

	traced_start(&traced, "attach", scene->group, "--netns", scene->netns);
	cr_assert(traced_next_that(&traced, moments[moment].holds), "%s", moments[moment].name);
	if (moments[moment].after)
		traced_do_call(&traced);
	servers_kill(&scene->servers, worker, SIGKILL);
	traced_run_on(&traced, ret_said);
}

/* Either the others are steered or nobody is. */
static void lose_one_of_four(size_t moment, size_t worker)
{
	struct said said CLEANUP(said_done) = {};
	struct scene scene;

	scene_start(&scene, "--workers", "4");
	die_during_attach(&scene, moment, worker, &said);
	if (said.code == EXIT_DONE) {
		expect_done(&said, moments[moment].name, "steering 3 listeners");
		expect_steered(&scene, worker, moments[moment].name);
		detach_all();
	} else {
		expect_refused(&said, moments[moment].name, EXIT_FAILED, "");
	}
	expect_untouched(&scene.servers.endpoint, moments[moment].name);
	servers_stop(&scene.servers);
}

/* Listeners are taken in the order in which they were opened, hence the first worker. */
Test(crash, a_worker_that_dies_during_an_attach_takes_no_other_along)
{
	size_t moment;

	for (moment = 0; moment < sizeof(moments) / sizeof(moments[0]); moment++)
		lose_one_of_four(moment, 0);
}

Test(crash, a_worker_whose_turn_is_yet_to_come_takes_no_other_along_either)
{
	size_t moment;

	for (moment = 0; moment < sizeof(moments) / sizeof(moments[0]); moment++)
		if (moments[moment].is_within)
			lose_one_of_four(moment, 3);
}

/* Earlier moments are all alike: the second look at the group ends it. */
Test(crash, a_group_that_becomes_one_listener_during_an_attach_is_refused)
{
	struct scene scene;
	size_t moment;

	for (moment = FIRST_MOMENT_WITHIN; moment < sizeof(moments) / sizeof(moments[0]);
	     moment++) {
		struct said said CLEANUP(said_done) = {};

		scene_start(&scene, "--workers", "2");
		die_during_attach(&scene, moment, 0, &said);
		expect_refused(&said, moments[moment].name, EXIT_NOTHING, "one listener");
		expect_untouched(&scene.servers.endpoint, moments[moment].name);
		servers_stop(&scene.servers);
	}
}

/* An attach that has the lock, stopped before it pins the first time. */
static void start_and_stop(const struct scene *scene, struct traced *ret_traced)
{
	traced_start(ret_traced, "attach", scene->group, "--netns", scene->netns);
	cr_assert(traced_next_that(ret_traced, call_pins));
}

/* Another one that has tried to get the lock, and did not get it. */
static void start_and_wait(const struct scene *scene, struct traced *ret_traced)
{
	traced_start(ret_traced, "attach", scene->group, "--netns", scene->netns);
	cr_assert(traced_next_that(ret_traced, call_is_flock));
	traced_do_call(ret_traced);
	cr_assert_eq(ret_traced->result, -EWOULDBLOCK, "flock: %ld", (long)ret_traced->result);
}

Test(crash, a_second_attach_waits_for_the_first)
{
	struct said first_said CLEANUP(said_done) = {}, second_said CLEANUP(said_done) = {};
	struct traced first, second;
	struct scene scene;

	scene_start(&scene, "--workers", NR_WORKERS_TEXT);
	start_and_stop(&scene, &first);
	start_and_wait(&scene, &second);
	traced_run_on(&first, &first_said);
	traced_run_on(&second, &second_said);
	expect_done(&first_said, "first", "steering 2 listeners of 2 workers");
	expect_done(&second_said, "second", "is steered already");
	expect_steered(&scene, EVERY_WORKER, "two attaches");
}

Test(crash, a_second_attach_gives_up_on_a_first_that_does_not_end)
{
	struct said first_said CLEANUP(said_done) = {}, second_said CLEANUP(said_done) = {};
	struct traced first, second;
	struct scene scene;

	scene_start(&scene, "--workers", NR_WORKERS_TEXT);
	start_and_stop(&scene, &first);
	start_and_wait(&scene, &second);
	traced_run_on(&second, &second_said);
	expect_refused(&second_said, "second", EXIT_FAILED, "another socksteer");
	traced_run_on(&first, &first_said);
	expect_done(&first_said, "first", "steering 2 listeners of 2 workers");
	expect_steered(&scene, EVERY_WORKER, "one attach");
}
