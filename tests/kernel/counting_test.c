/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every connection is counted once when it opens and once when its worker closes it, on the
 * listener and on the worker that it belongs to, whatever happens to it.
 */
#include "support/clients.h"
#include "support/plain_group.h"
#include "support/sandbox.h"
#include "support/servers.h"
#include "support/steered.h"
#include "kernel/auditor.h"
#include "kernel/values.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/epoll.h>

TestSuite(counting, .init = quick_sandbox_enter, .timeout = TEST_SECONDS);

/* The counters of each worker's listener are those that its clients know. */
static void expect_held_as_clients_say(const struct steered *steered, const struct servers *servers,
				       const struct clients *clients)
{
	size_t i;

	for (i = 0; i < servers->nr_workers; i++)
		cr_expect_eq(steered_held(steered, slot_of_pid(steered, servers->pids[i])),
			     clients_of_worker(clients, i), "worker %zu", i);
}

/* Status reads the same maps, and each worker of these tests has a single listener. */
static void expect_status_to_agree(const struct steered *steered)
{
	struct counts counts;
	struct status status;
	size_t i;

	steered_count(steered, &counts);
	steered_status(steered, &status);
	for (i = 0; i < status.groups[0].nr_listeners; i++) {
		const struct status_listener *listener = &status.groups[0].listeners[i];
		const struct load *load = &counts.loads[listener->slot];

		cr_expect(!memcmp(&listener->load, load, sizeof(*load)), "slot %u", listener->slot);
		cr_expect_eq(listener->held, load->opened - load->closed);
		cr_expect_eq(listener->worker_held, listener->held, "slot %u", listener->slot);
	}
	status_done(&status);
}

/* Nothing is held, by any worker or listener, and the last one was counted. */
static void expect_all_closed(const struct steered *steered)
{
	struct counts counts;
	uint32_t slot;

	await_held(steered, EVERY_SLOT, 0);
	steered_count(steered, &counts);
	for (slot = 0; slot < NR_SEEN_SLOTS; slot++)
		cr_expect_eq(counts.loads[slot].opened, counts.loads[slot].closed, "slot %u", slot);
	expect_status_to_agree(steered);
}

Test(counting, connections_from_before_the_attach_are_counted_on_their_workers)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;

	servers_start(&servers, "--workers", "8");
	clients_hold(&clients, &servers.endpoint, 100);
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	cr_expect_eq(steered.report.nr_seeded, 100);
	expect_held_as_clients_say(&steered, &servers, &clients);
	expect_status_to_agree(&steered);
	clients_close(&clients, EVERY_WORKER);
	expect_all_closed(&steered);
}

Test(counting, what_was_open_before_the_attach_weighs_in_the_decision)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;

	servers_start(&servers, "--workers", "4");
	clients_hold(&clients, &servers.endpoint, 40);
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	clients_hold(&clients, &servers.endpoint, 4 * clients_most(&clients, 4) - 40);
	cr_expect_eq(clients_most(&clients, 4), clients_fewest(&clients, 4));
}

/*
 * Counts, and no other, for as many short connections. There may be more runs than connections: a
 * machine that stalls for a second makes its clients send their SYN again, and the FIN of a client
 * that says no word can overtake the last packet of its handshake, on another CPU; it finds no
 * connection yet, and is steered like the beginning of one.
 */
static void expect_visits(const struct steered *steered, const struct counts *before, uint64_t nr)
{
	struct counts after;
	uint64_t nr_runs;

	await_held(steered, EVERY_SLOT, 0);
	steered_count(steered, &after);
	nr_runs = after.outcomes.selected - before->outcomes.selected;
	cr_expect_geq(nr_runs, nr);
	expect_outcomes(steered, before, (struct outcomes){ .selected = nr_runs });
	expect_loads(steered, before,
		     (struct load){ .opened = nr, .closed = nr, .steered = nr_runs });
}

static const struct {
	const char *name;
	enum client_end end;
} ends[] = {
	{ "the client closes first", END_CLIENT_FIRST },
	{ "the worker closes first", END_WORKER_FIRST },
	{ "the client resets", END_RESET },
	{ "the client closes without a word", END_UNASKED },
};

Test(counting, connections_count_once_however_they_end)
{
	struct servers servers;
	struct steered steered;
	struct counts before;
	size_t i;

	servers_start(&servers, "--workers", "4");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		cr_log_info("%s", ends[i].name);
		steered_count(&steered, &before);
		clients_visit(&servers.endpoint, 300, 4, ends[i].end);
		expect_visits(&steered, &before, 300);
	}
	expect_all_closed(&steered);
}

Test(counting, thousands_of_short_connections_leave_nothing_behind)
{
	struct servers servers;
	struct steered steered;
	struct counts before;

	servers_start(&servers, "--workers", "4");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	steered_count(&steered, &before);
	clients_visit(&servers.endpoint, 2500, 8, END_CLIENT_FIRST);
	clients_visit(&servers.endpoint, 2500, 8, END_WORKER_FIRST);
	expect_visits(&steered, &before, 5000);
	expect_all_closed(&steered);
}

Test(counting, syn_cookies_run_the_program_twice_and_count_the_connection_once)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;
	struct counts before;

	sysctl_write("net/ipv4/tcp_syncookies", "2");
	servers_start(&servers, "--workers", "5");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	steered_count(&steered, &before);
	clients_hold(&clients, &servers.endpoint, 50);
	expect_outcomes(&steered, &before, (struct outcomes){ .selected = 100 });
	expect_loads(&steered, &before, (struct load){ .opened = 50, .steered = 100 });
	expect_held_as_clients_say(&steered, &servers, &clients);
	clients_close(&clients, EVERY_WORKER);
	expect_all_closed(&steered);
}

Test(counting, a_second_attach_counts_what_is_open_by_then)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;

	servers_start(&servers, "--workers", "4");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	clients_hold(&clients, &servers.endpoint, 20);
	steered_detach(&steered);
	clients_close(&clients, 0);
	clients_hold(&clients, &servers.endpoint, 10);
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	cr_expect_eq(steered.report.nr_seeded, clients.nr);
	expect_held_as_clients_say(&steered, &servers, &clients);
	clients_close(&clients, EVERY_WORKER);
	expect_all_closed(&steered);
}

/* Another group keeps the tables, and the records in the sockets, while the first one is away. */
Test(counting, records_of_an_earlier_attach_are_renewed)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers, others;
	struct steered steered, kept;

	servers_start(&servers, "--workers", "4");
	servers_start(&others, "--workers", "2");
	steer(&kept, &others.endpoint, POLICY_LEAST_LOADED);
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	clients_hold(&clients, &servers.endpoint, 20);
	steered_detach(&steered);
	clients_close(&clients, 0);
	clients_hold(&clients, &servers.endpoint, 10);
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	expect_held_as_clients_say(&steered, &servers, &clients);
	expect_status_to_agree(&steered);
	clients_close(&clients, EVERY_WORKER);
	expect_all_closed(&steered);
}

/* Tells the auditor what an attach would have told it, read back from the group's maps. */
static void add_holders(const struct steered *steered, struct auditor *auditor, uint32_t nr_slots)
{
	struct audit_place place = { .netns = steered->spec.netns,
				     .family = steered->spec.family,
				     .port = steered->spec.port };
	struct listener_info info;
	struct worker worker;
	struct member member;
	uint32_t slot;

	memcpy(place.address, steered->spec.address, sizeof(place.address));
	cr_assert_eq(auditor_add_place(auditor, &place, 0), 0);
	for (slot = 0; slot < nr_slots; slot++) {
		struct audit_holder holder = {};
		struct conn_owner owner = {};

		cr_assert_eq(value_read(steered->maps.members, slot, &member), 0);
		cr_assert_eq(value_read(steered->tables.listener_info, member.listener, &info), 0);
		worker_of_slot(steered, slot, &worker);
		holder.id = worker.event_loop;
		owner.worker = member.worker;
		owner.worker_generation = worker.generation;
		owner.listener = member.listener;
		owner.listener_generation = info.generation;
		cr_assert_eq(auditor_add_holder(auditor, &holder, &owner), 0);
	}
}

Test(counting, a_second_pass_over_open_connections_counts_none_again)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct audit_counts found;
	struct auditor *auditor;
	struct servers servers;
	struct steered steered;
	struct failure failure = {};
	struct counts before;

	servers_start(&servers, "--workers", "4");
	clients_hold(&clients, &servers.endpoint, 20);
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	clients_hold(&clients, &servers.endpoint, 20);
	steered_count(&steered, &before);
	cr_assert_eq(auditor_new(&steered.tables, &auditor, &failure), 0, "%s", failure.message);
	add_holders(&steered, auditor, 4);
	cr_assert_eq(auditor_run(auditor, true, &found, &failure), 0, "%s", failure.message);
	cr_expect_eq(found.totals.connections, 40);
	cr_expect_eq(found.totals.unrecorded, 0);
	cr_expect_eq(found.totals.misplaced, 0);
	expect_loads(&steered, &before, (struct load){});
	auditor_free(auditor);
}

/* Two event loops that each watch one listener of both groups. */
static void start_pair(struct plain_group *first, struct plain_group *second)
{
	size_t i;

	plain_group_init(first, "127.0.0.1", "0");
	plain_group_init(second, "127.0.0.1", "0");
	plain_group_add_watched(first, 2, PLAIN_BACKLOG);
	for (i = 0; i < 2; i++) {
		struct epoll_event event = { .events = EPOLLIN };

		plain_group_add(second, PLAIN_BACKLOG);
		cr_assert_eq(epoll_ctl(first->epolls[i], EPOLL_CTL_ADD, second->listeners[i],
				       &event),
			     0);
	}
}

/* What status says the workers hold in all, and their listeners of this group. */
static void expect_totals(const struct steered *steered, uint64_t held, uint64_t worker_held)
{
	struct status status;
	uint64_t held_sum = 0;
	size_t i;

	steered_status(steered, &status);
	cr_assert_eq(status.groups[0].nr_listeners, 2);
	for (i = 0; i < 2; i++) {
		held_sum += status.groups[0].listeners[i].held;
		cr_expect_eq(status.groups[0].listeners[i].worker_held, worker_held, "slot %zu", i);
	}
	cr_expect_eq(held_sum, held);
	status_done(&status);
}

Test(counting, a_worker_of_two_groups_holds_the_sum_of_both)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct plain_group first, second;
	struct steered of_first, of_second;

	start_pair(&first, &second);
	steer(&of_first, &first.endpoint, POLICY_LEAST_CONN);
	steer(&of_second, &second.endpoint, POLICY_LEAST_CONN);
	clients_connect(&clients, &first.endpoint, 7);
	await_held(&of_first, EVERY_SLOT, 7);
	/* The worker with 3 is next on the other port as well, although that port holds nothing. */
	clients_connect(&clients, &second.endpoint, 1);
	await_held(&of_second, EVERY_SLOT, 1);
	expect_totals(&of_first, 7, 4);
	expect_totals(&of_second, 1, 4);
	clients_connect(&clients, &second.endpoint, 4);
	await_held(&of_second, EVERY_SLOT, 5);
	expect_totals(&of_first, 7, 6);
	expect_totals(&of_second, 5, 6);
}
