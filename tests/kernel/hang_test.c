/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Workers that hang: noticed by what waits in their queue, passed over, and back when they move.
 */
#include "kernel/values.h"
#include "support/clients.h"
#include "support/plain_group.h"
#include "support/sandbox.h"
#include "support/servers.h"
#include "support/steered.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* So long that a worker of a slow machine that is well is never called stuck. */
#define STUCK_AFTER_NS 500000000

/* Of a slow worker: longer than that, and nowhere near ten times as long. */
#define SLOW_PATH "/sleep/1500"

/* The worker that hangs is the first. */
#define HUNG 0

TestSuite(hang, .init = quick_sandbox_enter, .timeout = TEST_SECONDS);

/* Workers, steered, each with a connection; the one in a slot is looked at. */
struct scene {
	struct servers servers;
	struct steered steered;
	struct clients held;
	struct clients queued;
	uint32_t slot;
	bool is_stuck; /* what is waited for */
};

static void scene_start(struct scene *scene, size_t nr_workers, enum policy policy)
{
	char number[16];

	*scene = (struct scene){};
	snprintf(number, sizeof(number), "%zu", nr_workers);
	servers_start(&scene->servers, "--workers", number);
	/* One connection for each, which a policy that draws lots would not give. */
	steer_hangable(&scene->steered, &scene->servers.endpoint, POLICY_LEAST_CONN);
	steered_set_stuck_after(&scene->steered, STUCK_AFTER_NS);
	scene->slot = slot_of_pid(&scene->steered, scene->servers.pids[HUNG]);
	clients_hold(&scene->held, &scene->servers.endpoint, nr_workers);
	cr_assert_eq(clients_fewest(&scene->held, nr_workers), 1);
	steered_set_policy(&scene->steered, policy);
}

static void scene_end(struct scene *scene)
{
	clients_done(&scene->held);
	clients_done(&scene->queued);
	steered_done(&scene->steered);
}

static void member_of(const struct scene *scene, uint32_t slot, struct member *ret_member)
{
	cr_assert_eq(value_read(scene->steered.maps.members, slot, ret_member), 0);
}

static bool is_as_expected(void *argument)
{
	const struct scene *scene = argument;
	struct member member;
	uint32_t result;

	cr_assert_eq(group_maps_survey(&scene->steered.maps, &result), 0);
	member_of(scene, scene->slot, &member);
	return (member.stuck_ns != 0) == scene->is_stuck;
}

static void await_stuck(struct scene *scene, bool is_stuck)
{
	scene->is_stuck = is_stuck;
	cr_assert(wait_until(is_as_expected, scene, DEADLINE_MS), "slot %u: not %s", scene->slot,
		  is_stuck ? "stuck" : "recovered");
}

/* One more connection; true when it waits in the queue of the slot, so that nobody answers. */
static bool reaches_slot(void *argument)
{
	struct scene *scene = argument;
	uint64_t before = steered_held(&scene->steered, scene->slot);

	clients_connect(&scene->queued, &scene->servers.endpoint, 1);
	return steered_held(&scene->steered, scene->slot) > before;
}

static void signal_worker(const struct scene *scene, size_t worker, int signal_number)
{
	cr_assert_eq(kill(scene->servers.pids[worker], signal_number), 0);
}

/* Stops the worker, and lets something wait for it. */
static void hang_worker(struct scene *scene)
{
	signal_worker(scene, HUNG, SIGSTOP);
	cr_assert(wait_until(reaches_slot, scene, DEADLINE_MS));
}

/* How many of these more connections the slot gets. */
static uint64_t share_of(struct scene *scene, size_t nr_connections)
{
	struct counts before, after;

	steered_count(&scene->steered, &before);
	clients_connect(&scene->queued, &scene->servers.endpoint, nr_connections);
	steered_count(&scene->steered, &after);
	return after.loads[scene->slot].steered - before.loads[scene->slot].steered;
}

/* Everything that waited is answered in the end. */
static void expect_answers(struct scene *scene)
{
	size_t i;

	for (i = 0; i < scene->queued.nr; i++)
		cr_assert_eq(client_send(&scene->queued.items[i], "/"), 0);
	for (i = 0; i < scene->queued.nr; i++)
		cr_expect_eq(client_receive(&scene->queued.items[i]), 0, "connection %zu", i);
}

struct policy_case {
	enum policy policy;
};

ParameterizedTestParameters(hang, a_hung_worker_gets_nothing_under_any_policy)
{
	static struct policy_case cases[] = {
		{ POLICY_LEAST_LOADED },
		{ POLICY_LEAST_CONN },
		{ POLICY_P2C },
		{ POLICY_ROUND_ROBIN },
	};

	return cr_make_param_array(struct policy_case, cases, sizeof(cases) / sizeof(cases[0]));
}

ParameterizedTest(struct policy_case *named, hang, a_hung_worker_gets_nothing_under_any_policy)
{
	struct member member;
	struct scene scene;

	scene_start(&scene, 3, named->policy);
	hang_worker(&scene);
	await_stuck(&scene, true);
	cr_expect_eq(share_of(&scene, 12), 0);
	signal_worker(&scene, HUNG, SIGCONT);
	await_stuck(&scene, false);
	expect_answers(&scene);
	/* Its share comes back by and by. */
	cr_expect(wait_until(reaches_slot, &scene, DEADLINE_MS));
	member_of(&scene, scene.slot, &member);
	cr_expect_eq(member.nr_stuck, 1);
	scene_end(&scene);
}

/* True once connections alone have shown it, without a survey. */
static bool is_found_by_connecting(void *argument)
{
	struct scene *scene = argument;
	struct member member;

	clients_connect(&scene->queued, &scene->servers.endpoint, 1);
	member_of(scene, scene->slot, &member);
	return member.stuck_ns != 0;
}

Test(hang, the_next_connections_alone_show_that_a_worker_hangs)
{
	struct scene scene;

	scene_start(&scene, 2, POLICY_LEAST_LOADED);
	hang_worker(&scene);
	cr_expect(wait_until(is_found_by_connecting, &scene, DEADLINE_MS));
	cr_expect_eq(share_of(&scene, 10), 0);
	scene_end(&scene);
}

Test(hang, in_a_large_group_a_hung_worker_is_passed_over_too)
{
	struct scene scene;

	scene_start(&scene, 40, POLICY_LEAST_LOADED);
	hang_worker(&scene);
	await_stuck(&scene, true);
	/* Each CPU ranks by what it knew, and learns at most once what is wrong with a slot. */
	cr_expect_leq(share_of(&scene, 100), 1);
	signal_worker(&scene, HUNG, SIGCONT);
	await_stuck(&scene, false);
	cr_expect(wait_until(reaches_slot, &scene, DEADLINE_MS));
	scene_end(&scene);
}

Test(hang, when_all_hang_connections_are_accepted_and_spread)
{
	uint64_t held[3];
	struct scene scene;
	uint32_t slot;
	size_t i;

	scene_start(&scene, 3, POLICY_LEAST_CONN);
	for (i = 0; i < 3; i++)
		signal_worker(&scene, i, SIGSTOP);
	clients_connect(&scene.queued, &scene.servers.endpoint, 6);
	for (i = 0; i < 3; i++) {
		scene.slot = slot_of_pid(&scene.steered, scene.servers.pids[i]);
		await_stuck(&scene, true);
	}
	clients_connect(&scene.queued, &scene.servers.endpoint, 30);
	await_held(&scene.steered, EVERY_SLOT, 39);
	for (slot = 0; slot < 3; slot++)
		held[slot] = steered_held(&scene.steered, slot);
	cr_expect(held[0] == 13 && held[1] == 13 && held[2] == 13, "%lu, %lu and %lu", held[0],
		  held[1], held[2]);
	for (i = 0; i < 3; i++)
		signal_worker(&scene, i, SIGCONT);
	expect_answers(&scene);
	await_stuck(&scene, false);
	scene_end(&scene);
}

/* True when nothing waits in any queue. */
static bool has_no_queue(void *argument)
{
	const struct scene *scene = argument;
	uint32_t result;

	cr_assert_eq(group_maps_survey(&scene->steered.maps, &result), 0);
	return !result;
}

/* One request that takes longer than stuck-after, with something in the queue behind it. */
static void be_slow_once(struct scene *scene)
{
	struct client *client = &scene->held.items[0];
	size_t i;

	for (i = 0; i < scene->held.nr; i++)
		if (scene->held.items[i].worker == HUNG)
			client = &scene->held.items[i];
	cr_assert_eq(client_send(client, SLOW_PATH), 0);
	cr_assert(wait_until(reaches_slot, scene, DEADLINE_MS));
	cr_assert(wait_until(has_no_queue, scene, DEADLINE_MS));
	cr_assert_eq(client_receive(client), 0);
}

Test(hang, a_slow_worker_is_called_stuck_once_and_then_known)
{
	struct member member;
	struct scene scene;
	int i;

	scene_start(&scene, 2, POLICY_LEAST_CONN);
	for (i = 0; i < 3; i++)
		be_slow_once(&scene);
	member_of(&scene, scene.slot, &member);
	cr_expect_eq(member.nr_stuck, 1);
	cr_expect_gt(member.pace_ns, STUCK_AFTER_NS);
	scene_end(&scene);
}

Test(hang, a_worker_that_only_waits_is_never_stuck)
{
	struct member member;
	struct scene scene;
	uint32_t result;

	scene_start(&scene, 2, POLICY_LEAST_LOADED);
	cr_assert(wait_until(has_no_queue, &scene, DEADLINE_MS));
	steered_set_stuck_after(&scene.steered, 1);
	cr_assert_eq(group_maps_survey(&scene.steered.maps, &result), 0);
	cr_expect_eq(result, 0);
	member_of(&scene, scene.slot, &member);
	cr_expect_eq(member.nr_stuck, 0);
	cr_expect_eq(member.head, 0);
	scene_end(&scene);
}

/* A child that inherits the listeners of the group, and nothing that watches them. */
static pid_t start_heir(const struct plain_group *group)
{
	int ends[2];
	pid_t pid;
	char word;

	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(group->epolls[0]);
		if (write(ends[1], "", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	cr_assert_eq(read(ends[0], &word, 1), 1);
	close(ends[0]);
	close(ends[1]);
	return pid;
}

Test(hang, a_listener_that_only_a_child_of_its_dead_worker_holds_gets_nothing)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct plain_group group;
	struct steered steered;
	struct servers servers;
	struct status status;
	uint64_t cookie;
	char address[ENDPOINT_TEXT_BYTES];
	uint32_t slot;
	pid_t heir;

	servers_start(&servers, "--workers", "2");
	endpoint_format(&servers.endpoint, address);
	plain_group_init(&group, "127.0.0.1", strrchr(address, ':') + 1);
	plain_group_add_watched(&group, 1, PLAIN_BACKLOG);
	steer_hangable(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	cookie = socket_cookie(group.listeners[0]);
	slot = slot_of_cookie(&steered, cookie);
	heir = start_heir(&group);
	plain_group_close(&group, 0);
	clients_hold(&clients, &servers.endpoint, 20);
	cr_expect_eq(steered_held(&steered, slot), 0);
	steered_status(&steered, &status);
	cr_expect_eq(status.groups[0].listeners[slot].state, STATE_UNATTENDED);
	/* The view names who keeps it alive. */
	cr_expect_eq(status.groups[0].listeners[slot].pid, (uint32_t)heir);
	status_done(&status);
	kill(heir, SIGKILL);
	waitpid(heir, NULL, 0);
	plain_group_done(&group);
	steered_done(&steered);
}
