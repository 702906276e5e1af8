/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * nginx workers that hang, and one that is dead while its listener lives on in the master.
 */
#include "base/cleanup.h"
#include "support/clients.h"
#include "support/daemon.h"
#include "support/foreign.h"
#include "support/nginx.h"
#include "support/program.h"
#include "support/sandbox.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <signal.h>

#define NR_VISITS 20

TestSuite(hang_apps, .init = foreign_enter, .fini = foreign_leave, .timeout = TEST_SECONDS);

static void run_start(struct program *daemon, const char *rescue)
{
	char netns[NUMBER_BYTES];

	network_format(netns);
	program_start(daemon, NULL,
		      (const char *const[]){ "run", FOREIGN_GROUP, "--netns", netns, NULL });
	await_steered(&foreign_get()->endpoint);
	program_succeeds("set", FOREIGN_GROUP, rescue, "--netns", netns);
}

/* Of the listener in a slot of the group. */
static void listener_read(uint32_t slot, struct status_listener *ret_listener)
{
	struct status status CLEANUP(status_done) = {};

	foreign_status(&status);
	cr_assert_gt(status.groups[0].nr_listeners, slot);
	*ret_listener = status.groups[0].listeners[slot];
}

/* One request on each of so many connections, none of which waits for the one before. */
static void send_all(struct clients *clients, size_t nr)
{
	size_t i;

	clients_connect(clients, &foreign_get()->endpoint, nr);
	for (i = 0; i < nr; i++)
		cr_assert_eq(client_send(&clients->items[i], "/"), 0);
}

static void expect_answers(struct clients *clients)
{
	size_t i;

	for (i = 0; i < clients->nr; i++)
		cr_expect_eq(client_receive(&clients->items[i]), 0, "connection %zu", i);
}

/* True as soon as a new connection reaches the worker in the first slot, whoever that is by now. */
static bool is_back(void *argument)
{
	struct status_listener before, after;

	listener_read(0, &before);
	cr_assert_eq(client_visit(&foreign_get()->endpoint, END_CLIENT_FIRST), 0);
	listener_read(0, &after);
	return after.pid != *(const uint32_t *)argument && after.load.steered > before.load.steered;
}

/* True once the listener in the first slot is known to be stuck; one more connection if not. */
static bool is_stuck(void *argument)
{
	struct status_listener listener;
	struct clients *clients = argument;

	listener_read(0, &listener);
	if (listener.state == STATE_STUCK)
		return true;
	clients_connect(clients, &foreign_get()->endpoint, 1);
	cr_assert_eq(client_send(&clients->items[clients->nr - 1], "/"), 0);
	return false;
}

Test(hang_apps, of_a_stopped_nginx_worker_only_the_first_few_clients_know)
{
	struct clients clients CLEANUP(clients_done) = {}, later CLEANUP(clients_done) = {};
	struct said said CLEANUP(said_done) = {};
	struct status_listener before, after;
	uint32_t nobody = 0;
	struct program daemon;

	nginx_start(2);
	run_start(&daemon, "rescue=off");
	listener_read(0, &before);
	cr_assert_eq(kill((pid_t)before.pid, SIGSTOP), 0);
	cr_assert(wait_until(is_stuck, &clients, DEADLINE_MS));
	listener_read(0, &before);
	send_all(&later, NR_VISITS);
	listener_read(0, &after);
	/* The plain kernel gives it about half of them. */
	cr_expect_eq(after.load.steered, before.load.steered);
	expect_answers(&later);
	cr_assert_eq(kill((pid_t)before.pid, SIGCONT), 0);
	expect_answers(&clients);
	cr_expect(wait_until(is_back, &nobody, DEADLINE_MS), "it gets no share any more");
	daemon_stop(&daemon, &said);
}

Test(hang_apps, what_waits_for_a_stopped_nginx_worker_is_answered_by_the_other)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct said said CLEANUP(said_done) = {};
	struct status_listener stopped;
	char netns[NUMBER_BYTES];
	struct program daemon;
	size_t i;

	nginx_start(2);
	run_start(&daemon, "rescue=stuck");
	program_succeeds("policy", FOREIGN_GROUP, "hash", "--netns", network_format(netns));
	listener_read(0, &stopped);
	cr_assert_eq(kill((pid_t)stopped.pid, SIGSTOP), 0);
	send_all(&clients, NR_VISITS);
	expect_answers(&clients);
	for (i = 0; i < clients.nr; i++)
		cr_expect_neq(clients.items[i].pid, (pid_t)stopped.pid);
	daemon_await_said(&daemon, "rescued ");
	cr_assert_eq(kill((pid_t)stopped.pid, SIGCONT), 0);
	daemon_stop(&daemon, &said);
}

/* The master is stopped, so that it does not respawn the worker that is killed. */
Test(hang_apps, the_queue_of_a_dead_nginx_worker_is_rescued_and_its_successor_is_welcome)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct said said CLEANUP(said_done) = {};
	struct status_listener dead;
	char netns[NUMBER_BYTES];
	struct program daemon;

	nginx_start(2);
	run_start(&daemon, "rescue=stuck+unattended");
	program_succeeds("policy", FOREIGN_GROUP, "hash", "--netns", network_format(netns));
	listener_read(0, &dead);
	cr_assert_eq(kill(foreign_get()->pid, SIGSTOP), 0);
	cr_assert_eq(kill((pid_t)dead.pid, SIGKILL), 0);
	send_all(&clients, NR_VISITS);
	expect_answers(&clients);
	daemon_await_said(&daemon, "rescued ");
	program_succeeds("policy", FOREIGN_GROUP, "least-loaded", "--netns", netns);
	clients_done(&clients);
	send_all(&clients, NR_VISITS);
	/* Nobody watches it, so it gets nothing. */
	expect_answers(&clients);
	cr_assert_eq(kill(foreign_get()->pid, SIGCONT), 0);
	cr_expect(wait_until(is_back, &dead.pid, DEADLINE_MS), "the successor gets nothing");
	daemon_stop(&daemon, &said);
}
