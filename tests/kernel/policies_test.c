/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Each policy, with and without weights, and switching between them.
 */
#include "support/clients.h"
#include "support/sandbox.h"
#include "support/servers.h"
#include "support/steered.h"
#include "socksteer/policy.h"

#include <criterion/criterion.h>

TestSuite(policies, .init = quick_sandbox_enter, .timeout = TEST_SECONDS);

static void set_weight(const struct steered *steered, const struct servers *servers, size_t number,
		       uint32_t weight)
{
	uint32_t slot = slot_of_pid(steered, servers->pids[number]);
	struct worker worker;

	worker_of_slot(steered, slot, &worker);
	worker.weight = weight;
	worker.cost = policy_cost(weight);
	worker_of_slot_set(steered, slot, &worker);
}

static void expect_about(const struct clients *clients, size_t number, size_t expected)
{
	size_t found = clients_of_worker(clients, number);

	cr_expect(found + 1 >= expected && found <= expected + 1, "worker %zu has %zu, not %zu",
		  number, found, expected);
}

Test(policies, round_robin_gives_each_worker_its_turn)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;
	size_t turn, i;

	servers_start(&servers, "--workers", "4");
	steer(&steered, &servers.endpoint, POLICY_ROUND_ROBIN);
	clients_hold(&clients, &servers.endpoint, 40);
	for (turn = 0; turn < 10; turn++) {
		uint32_t seen = 0;

		for (i = 0; i < 4; i++)
			seen |= 1u << clients.items[4 * turn + i].worker;
		cr_expect_eq(seen, 0xf, "turn %zu", turn);
	}
}

Test(policies, round_robin_gives_turns_by_weight)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;

	servers_start(&servers, "--workers", "3");
	steer(&steered, &servers.endpoint, POLICY_ROUND_ROBIN);
	set_weight(&steered, &servers, 1, 2);
	set_weight(&steered, &servers, 2, 3);
	clients_hold(&clients, &servers.endpoint, 60);
	expect_about(&clients, 0, 10);
	expect_about(&clients, 1, 20);
	expect_about(&clients, 2, 30);
}

Test(policies, round_robin_does_not_look_at_what_workers_hold)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct clients others CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;

	servers_start(&servers, "--workers", "2");
	steer(&steered, &servers.endpoint, POLICY_ROUND_ROBIN);
	clients_hold(&clients, &servers.endpoint, 20);
	clients_close(&clients, 0);
	await_held(&steered, slot_of_pid(&steered, servers.pids[0]), 0);
	clients_hold(&others, &servers.endpoint, 10);
	cr_expect_eq(clients_of_worker(&others, 0), 5);
}

Test(policies, least_loaded_shares_by_weight)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;

	servers_start(&servers, "--workers", "2");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	set_weight(&steered, &servers, 1, 3);
	clients_hold(&clients, &servers.endpoint, 40);
	/* A worker that is still busy with the last answer may be passed over once. */
	expect_about(&clients, 0, 10);
	expect_about(&clients, 1, 30);
}

Test(policies, least_conn_shares_by_weight)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;

	servers_start(&servers, "--workers", "2");
	steer(&steered, &servers.endpoint, POLICY_LEAST_CONN);
	set_weight(&steered, &servers, 1, 3);
	clients_hold(&clients, &servers.endpoint, 40);
	cr_expect_eq(clients_of_worker(&clients, 0), 10);
	cr_expect_eq(clients_of_worker(&clients, 1), 30);
}

Test(policies, least_conn_leaves_workers_one_apart_at_most)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;

	servers_start(&servers, "--workers", "6");
	steer(&steered, &servers.endpoint, POLICY_LEAST_CONN);
	clients_hold(&clients, &servers.endpoint, 75);
	cr_expect_eq(clients_most(&clients, 6), 13);
	cr_expect_eq(clients_fewest(&clients, 6), 12);
}

Test(policies, two_random_choices_keep_workers_close_together)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;
	struct counts before;
	size_t most, fewest;

	servers_start(&servers, "--workers", "8");
	steer(&steered, &servers.endpoint, POLICY_P2C);
	steered_count(&steered, &before);
	clients_hold(&clients, &servers.endpoint, 400);
	most = clients_most(&clients, 8);
	fewest = clients_fewest(&clients, 8);
	/*
	 * The excess over the mean stays constant with two choices, and grows like a square root
	 * with one, where this difference would be 20 on average.
	 */
	cr_expect_leq(most - fewest, 12, "from %zu to %zu", fewest, most);
	expect_outcomes(&steered, &before, (struct outcomes){ .selected = 400 });
}

Test(policies, hash_selects_nothing)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;
	struct counts before;

	servers_start(&servers, "--workers", "4");
	steer(&steered, &servers.endpoint, POLICY_HASH);
	steered_count(&steered, &before);
	clients_hold(&clients, &servers.endpoint, 40);
	expect_outcomes(&steered, &before, (struct outcomes){ .hash = 40 });
	expect_loads(&steered, &before, (struct load){ .opened = 40 });
}

Test(policies, another_policy_acts_from_the_next_connection_on)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;
	struct counts before;
	struct status status;

	servers_start(&servers, "--workers", "4");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	steered_set_policy(&steered, POLICY_HASH);
	steered_count(&steered, &before);
	clients_hold(&clients, &servers.endpoint, 3);
	expect_outcomes(&steered, &before, (struct outcomes){ .hash = 3 });

	steered_set_policy(&steered, POLICY_P2C);
	steered_count(&steered, &before);
	clients_hold(&clients, &servers.endpoint, 3);
	expect_outcomes(&steered, &before, (struct outcomes){ .selected = 3 });
	steered_status(&steered, &status);
	cr_expect_eq(status.groups[0].policy, POLICY_P2C);
	status_done(&status);
}

Test(policies, what_the_hash_did_counts_when_another_policy_takes_over)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;

	servers_start(&servers, "--workers", "4");
	steer(&steered, &servers.endpoint, POLICY_HASH);
	clients_hold(&clients, &servers.endpoint, 40);
	steered_set_policy(&steered, POLICY_LEAST_LOADED);
	/* Enough to fill every worker up to what the hash can have given to one of them. */
	clients_hold(&clients, &servers.endpoint, 4 * clients_most(&clients, 4) - 40);
	cr_expect_eq(clients_most(&clients, 4), clients_fewest(&clients, 4));
}
