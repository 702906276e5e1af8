/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where new connections go: the default policy, on real workers.
 */
#include "kernel/values.h"
#include "support/footprint.h"
#include "support/clients.h"
#include "support/plain_group.h"
#include "support/sandbox.h"
#include "support/servers.h"
#include "support/steered.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <signal.h>

/* Longer than any test runs: the worker is ended before its sleep is. */
#define SLEEP_PATH "/sleep/200000"

TestSuite(steering, .init = quick_sandbox_enter, .timeout = TEST_SECONDS);

static void expect_even(const struct clients *clients, size_t nr_workers, size_t difference)
{
	size_t most = clients_most(clients, nr_workers);
	size_t fewest = clients_fewest(clients, nr_workers);

	cr_expect_leq(most - fewest, difference, "the fullest worker has %zu, the emptiest %zu",
		      most, fewest);
}

Test(steering, connections_one_after_another_leave_workers_one_apart_at_most)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;
	struct counts before;

	servers_start(&servers, "--workers", "16");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	steered_count(&steered, &before);
	clients_hold(&clients, &servers.endpoint, 200);
	cr_expect_eq(clients_most(&clients, 16), 13);
	cr_expect_eq(clients_fewest(&clients, 16), 12);
	expect_outcomes(&steered, &before, (struct outcomes){ .selected = 200 });
	expect_loads(&steered, &before, (struct load){ .opened = 200, .steered = 200 });
}

Test(steering, a_worker_whose_connections_closed_gets_the_next_ones)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;
	size_t nr_others;

	servers_start(&servers, "--workers", "16");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	clients_hold(&clients, &servers.endpoint, 200);
	clients_close(&clients, 3);
	await_held(&steered, slot_of_pid(&steered, servers.pids[3]), 0);
	nr_others = clients.nr;
	clients_hold(&clients, &servers.endpoint, 12);
	cr_expect_eq(clients_of_worker(&clients, 3), 12);
	cr_expect_eq(clients.nr, nr_others + 12);
}

Test(steering, connections_from_eight_clients_at_once_leave_workers_two_apart_at_most)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;

	servers_start(&servers, "--workers", "16");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	clients_hold_at_once(&clients, &servers.endpoint, 200, 8);
	expect_even(&clients, 16, 2);
}

Test(steering, as_many_connections_as_workers_get_a_worker_each)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;
	size_t round, nr;

	servers_start(&servers, "--workers", "3");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	for (round = 0; round < 10; round++) {
		nr = 2 + round % 2;
		clients_hold(&clients, &servers.endpoint, nr);
		cr_expect_eq(clients_most(&clients, 3), 1, "round %zu", round);
		clients_close(&clients, EVERY_WORKER);
		await_held(&steered, EVERY_SLOT, 0);
	}
	clients_hold(&clients, &servers.endpoint, 17);
	expect_even(&clients, 3, 1);
}

struct states_wait {
	const struct steered *steered;
	uint32_t busy, idle; /* slots */
};

static bool are_busy_and_idle(void *argument)
{
	const struct states_wait *wait = argument;
	uint32_t states[2] = {};
	struct status status;
	size_t i;

	steered_status(wait->steered, &status);
	cr_assert_eq(status.groups[0].nr_listeners, 2);
	for (i = 0; i < 2; i++)
		states[status.groups[0].listeners[i].slot] = status.groups[0].listeners[i].state;
	status_done(&status);
	return states[wait->busy] == STATE_BUSY && states[wait->idle] == STATE_IDLE;
}

Test(steering, a_busy_worker_is_passed_over_for_an_idle_one_that_holds_as_many)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;
	struct states_wait wait;
	uint32_t busy, idle;

	servers_start(&servers, "--workers", "2");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	busy = slot_of_pid(&steered, servers.pids[0]);
	idle = slot_of_pid(&steered, servers.pids[1]);
	clients_hold(&clients, &servers.endpoint, 2);
	cr_assert_eq(client_send(&clients.items[clients.items[0].worker == 1], SLEEP_PATH), 0);
	wait = (struct states_wait){ &steered, busy, idle };
	cr_assert(wait_until(are_busy_and_idle, &wait, DEADLINE_MS));

	clients_hold(&clients, &servers.endpoint, 1);
	cr_expect_eq(clients.items[2].worker, 1);
}

struct away_wait {
	const struct steered *steered;
	uint32_t slot;
	uint64_t away_ns;
};

/* Each survey of the queues is a look, and a look adds what is certain. */
static bool is_away_for(void *argument)
{
	const struct away_wait *wait = argument;
	struct member member;
	uint32_t result;

	cr_assert_eq(group_maps_survey(&wait->steered->maps, &result), 0);
	cr_assert_eq(value_read(wait->steered->maps.members, wait->slot, &member), 0);
	return member.away_ns >= wait->away_ns;
}

Test(steering, a_worker_that_stays_busy_with_few_is_passed_over_for_an_idle_one_with_several)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;
	struct away_wait wait = { &steered, 0, 2200000000 };
	size_t i;

	servers_start(&servers, "--workers", "2");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	wait.slot = slot_of_pid(&steered, servers.pids[0]);
	clients_hold(&clients, &servers.endpoint, 2);
	cr_assert_eq(client_send(&clients.items[clients.items[0].worker == 1], SLEEP_PATH), 0);
	cr_assert(wait_until(is_away_for, &wait, DEADLINE_MS));

	/* Its one, and half a connection for being busy and for each of eight doublings: 5.5. */
	clients_hold(&clients, &servers.endpoint, 4);
	for (i = 2; i < 6; i++)
		cr_expect_eq(clients.items[i].worker, 1, "connection %zu", i);
	clients_connect(&clients, &servers.endpoint, 2);
	await_held(&steered, wait.slot, 2);
}

Test(steering, a_draining_worker_gets_nothing_while_another_is_there)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;
	struct worker worker;
	uint32_t slot;

	servers_start(&servers, "--workers", "3");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	slot = slot_of_pid(&steered, servers.pids[0]);
	worker_of_slot(&steered, slot, &worker);
	worker.flags |= WORKER_DRAINING;
	worker_of_slot_set(&steered, slot, &worker);
	clients_hold(&clients, &servers.endpoint, 30);
	cr_expect_eq(clients_of_worker(&clients, 0), 0);
	cr_expect_eq(clients_of_worker(&clients, 1), 15);
}

/* A killed worker's listener closes a moment later; until then it is a member as any other. */
static bool is_alone(void *argument)
{
	struct footprint footprint;

	footprint_look(argument, &footprint);
	return footprint.nr_listeners == 1;
}

Test(steering, a_draining_worker_gets_everything_when_it_is_the_only_one)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;
	struct counts before;
	struct worker worker;
	uint32_t slot;

	servers_start(&servers, "--workers", "2");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	slot = slot_of_pid(&steered, servers.pids[0]);
	worker_of_slot(&steered, slot, &worker);
	worker.flags |= WORKER_DRAINING;
	worker_of_slot_set(&steered, slot, &worker);
	servers_kill(&servers, 1, SIGKILL);
	cr_assert(wait_until(is_alone, &servers.endpoint, DEADLINE_MS));
	steered_count(&steered, &before);
	clients_hold(&clients, &servers.endpoint, 10);
	cr_expect_eq(clients_of_worker(&clients, 0), 10);
	expect_outcomes(&steered, &before, (struct outcomes){ .selected = 10 });
}

Test(steering, a_listener_that_nobody_watches_gets_nothing_while_another_is_watched)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct plain_group group;
	struct steered steered;
	struct counts before;
	uint32_t watched, unwatched;

	plain_group_init(&group, "127.0.0.1", "0");
	plain_group_add(&group, PLAIN_BACKLOG);
	plain_group_add_watched(&group, 1, PLAIN_BACKLOG);
	steer(&steered, &group.endpoint, POLICY_LEAST_LOADED);
	unwatched = slot_of_cookie(&steered, socket_cookie(group.listeners[0]));
	watched = slot_of_cookie(&steered, socket_cookie(group.listeners[1]));
	steered_count(&steered, &before);
	clients_connect(&clients, &group.endpoint, 20);
	await_held(&steered, watched, 20);
	cr_expect_eq(steered_held(&steered, unwatched), 0);

	plain_group_close(&group, 1);
	clients_connect(&clients, &group.endpoint, 5);
	/* The 20 of the closed listener have moved here as well, and stay charged to it. */
	await_held(&steered, unwatched, 5);
	expect_outcomes(&steered, &before, (struct outcomes){ .selected = 25, .migrated = 20 });
}
