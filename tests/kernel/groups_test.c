/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which groups are steered, which are refused, and who counts as a worker in them.
 */
#include "support/clients.h"
#include "support/plain_group.h"
#include "support/sandbox.h"
#include "support/servers.h"
#include "support/steered.h"
#include "support/waiting.h"
#include "steering/scan.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

static const struct attach_options usual = { .policy = POLICY_LEAST_LOADED };

static const struct listener_kind mptcp_kind = {
	.has_reuseport = true,
	.has_mptcp = true,
	.is_nonblocking = true,
};

TestSuite(groups, .init = quick_sandbox_enter, .timeout = TEST_SECONDS);

static void expect_refusal_at(const struct endpoint *endpoint, enum exit_code code,
			      const char *words)
{
	char text[ENDPOINT_TEXT_BYTES];
	struct group_spec spec;

	spec_of_endpoint(endpoint, text, &spec);
	expect_refusal(&spec, &usual, code, words);
}

Test(groups, one_listener_of_many_processes_is_nothing_to_steer)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;

	servers_start(&servers, "--workers", "3", "--shared");
	/* The process that opened it holds it as well. */
	expect_refusal_at(&servers.endpoint, EXIT_NOTHING,
			  "one listener, 4 processes: nothing to steer");
	clients_hold(&clients, &servers.endpoint, 5);
}

Test(groups, a_listener_without_reuseport_is_left_alone)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;

	servers_start(&servers, "--workers", "3", "--no-reuseport");
	expect_refusal_at(&servers.endpoint, EXIT_NOTHING, "not a reuseport listener");
	clients_hold(&clients, &servers.endpoint, 5);
}

Test(groups, a_port_that_nobody_listens_on_is_nothing_to_steer)
{
	struct plain_group group;

	plain_group_init(&group, "127.0.0.1", "0");
	plain_group_add(&group, PLAIN_BACKLOG);
	plain_group_done(&group);
	expect_refusal_at(&group.endpoint, EXIT_NOTHING, "nothing listens on");
}

Test(groups, mptcp_listeners_are_named_and_left_alone)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;

	servers_start(&servers, "--workers", "3", "--mptcp");
	expect_refusal_at(&servers.endpoint, EXIT_NOTHING, "MPTCP");
	clients_hold(&clients, &servers.endpoint, 5);
}

/* The program of the group at this endpoint, 0 for none. */
static uint32_t program_at(const struct endpoint *endpoint, uint32_t *ret_type)
{
	char text[ENDPOINT_TEXT_BYTES];
	struct inventory inventory = {};
	struct failure failure = {};
	struct group_spec spec;
	uint32_t id = 0;
	size_t i, found = 0;

	spec_of_endpoint(endpoint, text, &spec);
	cr_assert_eq(inventory_scan(&inventory, &failure), 0, "%s", failure.message);
	for (i = 0; i < inventory.nr_groups; i++) {
		if (!group_spec_matches(&spec, &inventory.groups[i]))
			continue;
		id = inventory.groups[i].prog_id;
		*ret_type = inventory.groups[i].prog_type;
		found++;
	}
	inventory_done(&inventory);
	cr_assert_eq(found, 1, "%zu groups at %s", found, text);
	return id;
}

Test(groups, a_group_with_one_mptcp_listener_keeps_the_hash)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct plain_group group;
	uint32_t type = 0;

	plain_group_init(&group, "127.0.0.1", "0");
	plain_group_add_watched(&group, 2, PLAIN_BACKLOG);
	plain_group_add_kind(&group, mptcp_kind, PLAIN_BACKLOG);
	expect_refusal_at(&group.endpoint, EXIT_NOTHING, "MPTCP");
	cr_expect_eq(program_at(&group.endpoint, &type), 0);
	cr_expect_eq(type, 0);
	clients_connect(&clients, &group.endpoint, 20);
}

/* Two watched listeners on this address and port. */
static void start_two(struct plain_group *group, const char *address, const char *port)
{
	plain_group_init(group, address, port);
	plain_group_add_watched(group, 2, PLAIN_BACKLOG);
}

static void port_of(const struct endpoint *endpoint, char ret_port[8])
{
	char text[ENDPOINT_TEXT_BYTES];

	endpoint_format(endpoint, text);
	snprintf(ret_port, 8, "%s", strrchr(text, ':') + 1);
}

static const char *const addresses[] = { "127.0.0.1", "0.0.0.0", "::", "::1" };

#define NR_ADDRESSES (sizeof(addresses) / sizeof(addresses[0]))

Test(groups, four_addresses_with_one_port_are_four_groups)
{
	struct plain_group groups[NR_ADDRESSES];
	struct steered steered[NR_ADDRESSES];
	struct clients clients CLEANUP(clients_done) = {};
	struct endpoint elsewhere;
	char port[8] = "0";
	size_t i;

	for (i = 0; i < NR_ADDRESSES; i++) {
		start_two(&groups[i], addresses[i], port);
		port_of(&groups[0].endpoint, port);
	}
	for (i = 0; i < NR_ADDRESSES; i++)
		steer(&steered[i], &groups[i].endpoint, POLICY_LEAST_LOADED);
	clients_connect(&clients, &groups[0].endpoint, 2);
	clients_connect(&clients, &groups[3].endpoint, 4);
	cr_assert_eq(endpoint_parse("127.0.0.2", port, &elsewhere), 0);
	clients_connect(&clients, &elsewhere, 6);
	await_held(&steered[0], EVERY_SLOT, 2);
	await_held(&steered[1], EVERY_SLOT, 6);
	await_held(&steered[3], EVERY_SLOT, 4);
	cr_expect_eq(steered_held(&steered[2], EVERY_SLOT), 0);
}

Test(groups, a_port_of_four_groups_is_refused_with_the_list)
{
	struct plain_group groups[NR_ADDRESSES];
	struct network network;
	char port[8] = "0", name[64];
	struct group_spec spec;
	size_t i;

	for (i = 0; i < NR_ADDRESSES; i++) {
		start_two(&groups[i], addresses[i], port);
		port_of(&groups[0].endpoint, port);
	}
	network_current(&network);
	cr_assert_eq(group_spec_parse(port, &spec), 0);
	spec.netns = network.inode;
	for (i = 0; i < NR_ADDRESSES; i++) {
		snprintf(name, sizeof(name), strchr(addresses[i], ':') ? "[%s]:%s" : "%s:%s",
			 addresses[i], port);
		expect_refusal(&spec, &usual, EXIT_USAGE, name);
	}
}

Test(groups, the_same_port_in_two_networks_is_two_groups)
{
	struct steered steered_first, steered_second;
	struct servers servers_first, servers_second;
	char port[8], address[ENDPOINT_TEXT_BYTES];
	struct network first, second;
	struct clients clients CLEANUP(clients_done) = {};
	struct group_spec spec;

	servers_start(&servers_first, "--workers", "2");
	port_of(&servers_first.endpoint, port);
	network_current(&first);
	network_new(&second);
	network_enter(&second);
	servers_start(&servers_second, "--workers", "3", "--port", port);
	steer(&steered_second, &servers_second.endpoint, POLICY_LEAST_LOADED);
	clients_hold(&clients, &servers_second.endpoint, 3);
	network_enter(&first);

	endpoint_format(&servers_first.endpoint, address);
	cr_assert_eq(group_spec_parse(address, &spec), 0);
	expect_refusal(&spec, &usual, EXIT_USAGE, "several groups");
	steer(&steered_first, &servers_first.endpoint, POLICY_LEAST_LOADED);
	cr_expect_eq(steered_nr_members(&steered_first), 2);
	cr_expect_eq(steered_nr_members(&steered_second), 3);
	clients_hold(&clients, &servers_first.endpoint, 2);
	cr_expect_eq(steered_held(&steered_first, EVERY_SLOT), 2);
	cr_expect_eq(steered_held(&steered_second, EVERY_SLOT), 3);
}

/* Runs are counted by the CPU that they are on, and so is how long a listener has waited there. */
static void stay_on_this_cpu(void)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET((size_t)sched_getcpu(), &here);
	cr_assert_eq(sched_setaffinity(0, sizeof(here), &here), 0);
}

struct arriving {
	const struct steered *steered;
	const struct endpoint *endpoint;
	struct counts before;
	struct clients clients;
	uint64_t nr_runs;
};

/* True once the group was left to the hash. */
static bool meets_the_hash(void *argument)
{
	struct arriving *arriving = argument;
	struct counts now;

	clients_connect(&arriving->clients, arriving->endpoint, 1);
	arriving->nr_runs++;
	steered_count(arriving->steered, &now);
	return now.outcomes.incomplete > arriving->before.outcomes.incomplete;
}

/* Somebody without a slot would starve if others were selected for long. */
Test(groups, after_a_while_without_a_slot_for_one_the_hash_serves_all)
{
	struct clients later CLEANUP(clients_done) = {};
	struct servers servers, joined;
	struct arriving arriving = {};
	struct steered steered;
	struct counts before;
	struct status status;
	char port[8];

	stay_on_this_cpu();
	servers_start(&servers, "--workers", "2");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	port_of(&servers.endpoint, port);
	servers_start(&joined, "--workers", "1", "--port", port);
	arriving.steered = &steered;
	arriving.endpoint = &servers.endpoint;
	steered_count(&steered, &arriving.before);
	cr_expect_not(meets_the_hash(&arriving), "the first run after the join is steered");
	cr_assert(wait_until(meets_the_hash, &arriving, DEADLINE_MS));
	expect_outcomes(&steered, &arriving.before,
			(struct outcomes){ .selected = arriving.nr_runs - 1, .incomplete = 1 });
	steered_count(&steered, &before);
	clients_connect(&arriving.clients, &servers.endpoint, 10);
	expect_outcomes(&steered, &before, (struct outcomes){ .incomplete = 10 });
	steered_status(&steered, &status);
	cr_expect_eq(status.groups[0].nr_missing, 1);
	status_done(&status);
	steer_again(&steered);
	cr_expect_eq(steered.report.nr_listeners, 3);
	cr_expect_eq(steered.report.nr_added, 1);
	/* What the joiner had accepted meanwhile is charged to it. */
	await_held(&steered, EVERY_SLOT, arriving.nr_runs + 10);
	steered_count(&steered, &before);
	clients_connect(&later, &servers.endpoint, 5);
	await_held(&steered, EVERY_SLOT, arriving.nr_runs + 15);
	expect_outcomes(&steered, &before, (struct outcomes){ .selected = 5 });
	clients_done(&arriving.clients);
}

/* Three of five: the two others would get everything. */
Test(groups, where_most_listeners_have_no_slot_the_hash_serves_all_at_once)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers, joined;
	struct steered steered;
	struct counts before;
	char port[8];

	servers_start(&servers, "--workers", "2");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	port_of(&servers.endpoint, port);
	servers_start(&joined, "--workers", "3", "--port", port);
	steered_count(&steered, &before);
	clients_connect(&clients, &servers.endpoint, 10);
	expect_outcomes(&steered, &before, (struct outcomes){ .incomplete = 10 });
}

Test(groups, attaching_again_changes_nothing)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;
	struct counts before;
	uint32_t program, type;

	servers_start(&servers, "--workers", "3");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	clients_hold(&clients, &servers.endpoint, 9);
	program = program_at(&servers.endpoint, &type);
	steered_count(&steered, &before);
	steer_again(&steered);
	expect_outcomes(&steered, &before, (struct outcomes){});
	expect_loads(&steered, &before, (struct load){});
	cr_expect_eq(program_at(&servers.endpoint, &type), program);
	cr_expect_eq(steered_nr_members(&steered), 3);
}

Test(groups, threads_of_one_process_are_as_many_workers)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;

	servers_start(&servers, "--workers", "4", "--threads");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	cr_expect_eq(steered.report.nr_workers, 4);
	clients_hold(&clients, &servers.endpoint, 12);
	cr_expect_eq(clients_most(&clients, 4), 3);
	cr_expect_eq(clients_fewest(&clients, 4), 3);
	clients_close(&clients, 2);
	await_held(&steered, EVERY_SLOT, 9);
	clients_hold(&clients, &servers.endpoint, 3);
	cr_expect_eq(clients_of_worker(&clients, 2), 3);
}

Test(groups, workers_that_block_in_accept_are_steered)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;
	size_t i;

	servers_start(&servers, "--workers", "3", "--blocking");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	cr_expect_eq(steered.report.nr_workers, 3);
	/* Each serves one connection until that ends, so one too many would never be answered. */
	clients_hold(&clients, &servers.endpoint, 3);
	for (i = 0; i < 3; i++)
		cr_expect_eq(steered_held(&steered, slot_of_pid(&steered, servers.pids[i])), 1);
}
