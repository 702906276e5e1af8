/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The audit finds what counters and sockets differ in, mends it, and is not deceived by connections
 * that come and go meanwhile.
 */
#include "base/cleanup.h"
#include "kernel/iterate.h"
#include "kernel/values.h"
#include "steering/audit.h"
#include "support/clients.h"
#include "support/plain_group.h"
#include "support/program.h"
#include "support/sandbox.h"
#include "support/servers.h"
#include "support/steered.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>

TestSuite(audit, .init = quick_sandbox_enter, .timeout = TEST_SECONDS);

static void audit_it(const struct steered *steered, bool repair, struct audit_report *ret_report)
{
	struct inspector *inspector;
	struct failure failure = {};

	cr_assert_eq(inspector_new(&inspector, &failure), 0, "%s", failure.message);
	cr_assert_eq(audit_run(inspector, &steered->spec, repair, ret_report, &failure), 0, "%s",
		     failure.message);
	inspector_free(inspector);
}

static void expect_clean(const struct steered *steered, uint64_t nr_connections)
{
	struct audit_report report CLEANUP(audit_done) = {};
	uint64_t counted = 0;
	size_t i;

	audit_it(steered, false, &report);
	cr_expect(audit_is_clean(&report));
	cr_expect_eq(report.nr_connections, nr_connections, "%lu connections",
		     (unsigned long)report.nr_connections);
	cr_assert_eq(report.nr_groups, 1);
	for (i = 0; i < report.groups[0].nr_rows; i++) {
		const struct audit_row *row = &report.groups[0].rows[i];

		cr_expect_eq(row->held, row->counted, "slot %u", row->slot);
		counted += row->counted;
	}
	cr_expect_eq(counted, nr_connections);
}

Test(audit, counters_that_are_right_differ_in_nothing)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;

	servers_start(&servers, "--workers", "4");
	clients_hold(&clients, &servers.endpoint, 10);
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	clients_hold(&clients, &servers.endpoint, 13);
	expect_clean(&steered, 23);
	clients_close(&clients, 0);
	expect_clean(&steered, clients.nr);
}

/* The sign is that of the counter: too much, or too little. */
static void expect_found_and_mended(const struct steered *steered, uint32_t slot,
				    int64_t difference)
{
	struct audit_report report CLEANUP(audit_done) = {};
	struct audit_report again CLEANUP(audit_done) = {};

	audit_it(steered, false, &report);
	cr_expect(!audit_is_clean(&report));
	cr_expect_eq(audit_certain(&report.groups[0].rows[slot].listener), difference);
	cr_expect_eq(audit_certain(&report.groups[0].rows[slot].worker), difference);
	audit_it(steered, true, &again);
	cr_expect_eq(again.nr_adjusted, (uint64_t)llabs(difference));
}

Test(audit, a_falsified_counter_is_found_and_mended)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;
	struct member member;
	uint32_t slot;

	servers_start(&servers, "--workers", "4");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	clients_hold(&clients, &servers.endpoint, 20);
	for (slot = 1; slot <= 2; slot++) {
		cr_assert_eq(value_read(steered.maps.members, slot, &member), 0);
		load_falsify(steered.tables.listener_load, member.listener, slot == 1 ? 3 : 0,
			     slot == 1 ? 0 : 2);
		load_falsify(steered.tables.worker_load, member.worker, slot == 1 ? 3 : 0,
			     slot == 1 ? 0 : 2);
		expect_found_and_mended(&steered, slot, slot == 1 ? 3 : -2);
		expect_clean(&steered, 20);
	}
	clients_close(&clients, EVERY_WORKER);
	await_held(&steered, EVERY_SLOT, 0);
}

#define NR_NEWCOMERS 3

/* Takes all that waits at a listener, into the epoll set that watches it. How many these are. */
static size_t accept_and_watch(const struct plain_group *group, size_t index, int *ret_accepted)
{
	struct epoll_event event = { .events = EPOLLIN };
	size_t nr = 0;
	int fd;

	while ((fd = plain_group_accept(group, index)) >= 0) {
		ret_accepted[nr++] = fd;
		cr_assert_eq(epoll_ctl(group->epolls[index], EPOLL_CTL_ADD, fd, &event), 0);
	}
	return nr;
}

Test(audit, connections_of_listeners_that_had_no_slot_yet_are_charged)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct audit_report report CLEANUP(audit_done) = {};
	struct servers servers;
	struct steered steered;
	struct plain_group more;
	size_t nr_accepted = 0, i;
	int accepted[20];
	char port[16];

	servers_start(&servers, "--workers", "2");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	snprintf(port, sizeof(port), "%u", steered.spec.port);
	plain_group_init(&more, "127.0.0.1", port);
	plain_group_add_watched(&more, NR_NEWCOMERS, PLAIN_BACKLOG);
	/* Most have no slot, so the hash serves all, and the newcomers have no record to inherit. */
	clients_connect(&clients, &servers.endpoint, 20);
	for (i = 0; i < NR_NEWCOMERS; i++)
		nr_accepted += accept_and_watch(&more, i, accepted + nr_accepted);
	cr_assert_gt(nr_accepted, 0);
	await_held(&steered, EVERY_SLOT, 20 - (uint64_t)nr_accepted);
	steer_again(&steered);
	audit_it(&steered, true, &report);
	cr_expect_eq(report.nr_connections, 20);
	expect_clean(&steered, 20);
	await_held(&steered, EVERY_SLOT, 20);
	while (nr_accepted)
		close(accepted[--nr_accepted]);
	clients_close(&clients, EVERY_WORKER);
	await_held(&steered, EVERY_SLOT, 0);
	plain_group_done(&more);
}

/* A connection in the queue of a worker that exits is accepted, and from then on held, by another. */
Test(audit, migrated_connections_are_charged_to_who_took_them)
{
	struct clients queued CLEANUP(clients_done) = {};
	struct audit_report report CLEANUP(audit_done) = {};
	struct clients held CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;
	pid_t hanging;
	size_t i;

	servers_start(&servers, "--workers", "2");
	clients_hold(&held, &servers.endpoint, 40);
	hanging = hanging_worker_start(&servers.endpoint, PLAIN_BACKLOG);
	steer(&steered, &servers.endpoint, POLICY_LEAST_CONN);
	clients_connect(&queued, &servers.endpoint, 5);
	await_held(&steered, slot_of_pid(&steered, hanging), 5);
	hanging_worker_end(hanging);
	/* Wakes those who do not know that they were given something, see migration_test.c. */
	steered_set_policy(&steered, POLICY_ROUND_ROBIN);
	clients_hold(&held, &servers.endpoint, 4);
	for (i = 0; i < queued.nr; i++) {
		cr_assert_eq(client_send(&queued.items[i], "/"), 0);
		cr_assert_eq(client_receive(&queued.items[i]), 0);
	}
	audit_it(&steered, true, &report);
	cr_expect_eq(report.nr_misplaced, 5);
	expect_clean(&steered, 49);
	steer_again(&steered);
	expect_clean(&steered, 49);
	clients_close(&held, EVERY_WORKER);
	clients_close(&queued, EVERY_WORKER);
	await_held(&steered, EVERY_SLOT, 0);
}

struct churn {
	const struct endpoint *to;
	atomic_bool stop;
};

static void *churn_on(void *argument)
{
	struct churn *churn = argument;

	while (!atomic_load(&churn->stop))
		clients_visit(churn->to, 50, 2, END_CLIENT_FIRST);
	return NULL;
}

Test(audit, connections_that_come_and_go_meanwhile_are_no_difference)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct churn churn = {};
	struct servers servers;
	struct steered steered;
	pthread_t thread;
	int i;

	servers_start(&servers, "--workers", "4");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	clients_hold(&clients, &servers.endpoint, 20);
	churn.to = &servers.endpoint;
	cr_assert_eq(pthread_create(&thread, NULL, churn_on, &churn), 0);
	for (i = 0; i < 10; i++) {
		struct audit_report report CLEANUP(audit_done) = {};

		audit_it(&steered, true, &report);
		cr_expect_eq(report.nr_adjusted, 0);
		cr_expect_eq(report.nr_misplaced, 0);
		cr_expect_eq(report.nr_unrecorded, 0);
	}
	atomic_store(&churn.stop, true);
	pthread_join(thread, NULL);
	await_held(&steered, EVERY_SLOT, 20);
	expect_clean(&steered, 20);
}

Test(audit, the_command_says_what_differs_and_by_its_exit_code)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;
	struct member member;
	struct said said;

	servers_start(&servers, "--workers", "2");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	clients_hold(&clients, &servers.endpoint, 6);
	program_run(&said, "audit");
	expect_done(&said, "a clean audit", "6 connections counted");
	said_done(&said);
	cr_assert_eq(value_read(steered.maps.members, 1, &member), 0);
	load_falsify(steered.tables.listener_load, member.listener, 4, 0);
	program_run(&said, "audit");
	cr_expect_eq(said.code, EXIT_FAILED);
	cr_expect(strstr(said.output, "+4"), "%s", said.output);
	cr_expect(strstr(said.error, "--repair"), "%s", said.error);
	said_done(&said);
	program_run(&said, "audit", "--repair");
	expect_done(&said, "a repair", "counters changed by 4 connections");
	said_done(&said);
	program_run(&said, "metrics");
	expect_done(&said, "metrics", "\nsocksteer_audit_runs_total 1\n");
	expect_done(&said, "metrics", "\nsocksteer_audit_adjusted_total 4\n");
	said_done(&said);
	program_run(&said, "audit", "--json");
	expect_done(&said, "an audit after it", "\"clean\": true");
	said_done(&said);
}

/* Two event loops that each watch one listener of both groups: one load each, over both. */
Test(audit, a_worker_of_two_groups_differs_in_neither)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct audit_report report CLEANUP(audit_done) = {};
	struct epoll_event event = { .events = EPOLLIN };
	struct plain_group first, second;
	struct steered one, other;
	size_t i;

	plain_group_init(&first, "127.0.0.1", "0");
	plain_group_init(&second, "127.0.0.1", "0");
	plain_group_add_watched(&first, 2, PLAIN_BACKLOG);
	for (i = 0; i < 2; i++) {
		plain_group_add(&second, PLAIN_BACKLOG);
		cr_assert_eq(epoll_ctl(first.epolls[i], EPOLL_CTL_ADD, second.listeners[i], &event),
			     0);
	}
	steer(&one, &first.endpoint, POLICY_LEAST_LOADED);
	steer(&other, &second.endpoint, POLICY_LEAST_LOADED);
	clients_connect(&clients, &first.endpoint, 6);
	clients_connect(&clients, &second.endpoint, 4);
	await_held(&one, EVERY_SLOT, 6);
	await_held(&other, EVERY_SLOT, 4);
	audit_it(&one, true, &report);
	cr_expect(audit_is_clean(&report));
	cr_expect_eq(report.nr_adjusted, 0);
	cr_expect_eq(report.nr_groups, 1);
	cr_expect_eq(report.groups[0].nr_rows, 2);
	cr_expect_eq(report.groups[0].rows[0].counted + report.groups[0].rows[1].counted, 6);
	plain_group_done(&first);
	plain_group_done(&second);
}
