/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * nginx with "listen ... reuseport": its master opens a listener for each worker, and every process
 * inherits all of them; which worker serves which listener only the event loops tell.
 */
#include "base/cleanup.h"
#include "support/clients.h"
#include "support/foreign.h"
#include "support/nginx.h"
#include "support/program.h"
#include "support/sandbox.h"
#include "support/visiting.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <sys/wait.h>

#define NR_WORKERS 4

TestSuite(nginx, .init = foreign_enter, .fini = foreign_leave, .timeout = TEST_SECONDS);

/* With the master five processes hold all four listeners. */
static void start(char netns[NUMBER_BYTES])
{
	nginx_start(NR_WORKERS);
	network_format(netns);
}

static size_t clients_of_pid(const struct clients *clients, uint32_t pid)
{
	size_t i, count = 0;

	for (i = 0; i < clients->nr; i++)
		count += clients->items[i].pid == (pid_t)pid;
	return count;
}

Test(nginx, each_listener_is_shown_with_its_worker_and_never_with_the_master)
{
	struct status status CLEANUP(status_done) = {};
	const struct status_group *group;
	char netns[NUMBER_BYTES];
	size_t i, j;

	start(netns);
	program_succeeds("attach", FOREIGN_GROUP, "--netns", netns);
	foreign_status(&status);
	group = status.groups;
	cr_assert_eq(group->nr_listeners, NR_WORKERS);
	for (i = 0; i < NR_WORKERS; i++) {
		cr_expect_neq(group->listeners[i].pid, (uint32_t)foreign_get()->pid);
		cr_expect_str_eq(group->listeners[i].comm, "nginx");
		for (j = 0; j < i; j++)
			cr_expect_neq(group->listeners[i].pid, group->listeners[j].pid);
	}
}

Test(nginx, forty_kept_connections_are_ten_for_each_worker)
{
	struct status status CLEANUP(status_done) = {};
	struct clients clients = {};
	char netns[NUMBER_BYTES];
	size_t i;

	start(netns);
	program_succeeds("attach", FOREIGN_GROUP, "--netns", netns);
	clients_hold(&clients, &foreign_get()->endpoint, 40);
	foreign_status(&status);
	for (i = 0; i < status.groups[0].nr_listeners; i++) {
		const struct status_listener *listener = &status.groups[0].listeners[i];

		cr_expect_eq(clients_of_pid(&clients, listener->pid), 10, "process %u answers %zu",
			     listener->pid, clients_of_pid(&clients, listener->pid));
		cr_expect_eq(listener->held, 10, "slot %u holds %lu", listener->slot,
			     listener->held);
	}
	clients_close(&clients, EVERY_WORKER);
}

/* What is known of the worker in slot 0, by a look at this moment. */
static struct status_listener first_listener(void)
{
	struct status status CLEANUP(status_done) = {};

	foreign_status(&status);
	return status.groups[0].listeners[0];
}

static bool is_draining(void *argument)
{
	(void)argument;
	return first_listener().draining;
}

/* The held connections of a process are answered once more, and then closed. */
static void finish(struct clients *clients, uint32_t pid)
{
	size_t i, kept = 0;

	for (i = 0; i < clients->nr; i++) {
		struct client *client = &clients->items[i];

		if (client->pid != (pid_t)pid) {
			clients->items[kept++] = *client;
			continue;
		}
		cr_expect_eq(client_send(client, "/"), 0);
		cr_expect_eq(client_receive(client), 0);
		cr_expect_eq(client->pid, (pid_t)pid);
		cleanup_fd(&client->fd);
	}
	clients->nr = kept;
}

Test(nginx, a_worker_that_is_drained_under_load_gets_nothing_more_and_finishes_what_it_holds)
{
	char netns[NUMBER_BYTES], pid[NUMBER_BYTES];
	struct said said CLEANUP(said_done) = {};
	struct status_listener drained, later;
	struct visiting visiting;
	struct clients clients = {};
	struct program program;

	start(netns);
	program_succeeds("attach", FOREIGN_GROUP, "--netns", netns);
	clients_hold(&clients, &foreign_get()->endpoint, 8);
	visiting_start(&visiting, &foreign_get()->endpoint);
	visiting_await(&visiting, 20);
	number_format(first_listener().pid, pid);
	program_start(&program, NULL,
		      (const char *const[]){ "drain", FOREIGN_GROUP, pid, "--wait", "--netns",
					     netns, NULL });
	cr_assert(wait_until(is_draining, NULL, DEADLINE_MS));
	/* Visits that had begun before have ended when every visitor has begun another one. */
	visiting_await(&visiting, 1);
	drained = first_listener();
	visiting_await(&visiting, 50);
	later = first_listener();
	cr_expect_eq(later.load.opened, drained.load.opened, "it got %" PRIu64 " more",
		     (uint64_t)(later.load.opened - drained.load.opened));
	cr_expect_eq(later.held, 2, "it holds %" PRIu64, later.held);
	cr_expect_eq(waitpid(program.pid, NULL, WNOHANG), 0, "it does not wait");
	finish(&clients, drained.pid);
	cr_expect_eq(clients.nr, 6);
	program_wait(&program, &said);
	expect_done(&said, "drain", "holds nothing any more\n");
	visiting_stop(&visiting);
	cr_expect_eq(first_listener().load.opened, drained.load.opened);
	clients_close(&clients, EVERY_WORKER);
}

Test(nginx, it_serves_on_the_hash_after_a_detach)
{
	struct clients clients = {};
	char netns[NUMBER_BYTES];
	size_t i;

	start(netns);
	program_succeeds("attach", FOREIGN_GROUP, "--netns", netns);
	clients_hold(&clients, &foreign_get()->endpoint, 8);
	program_succeeds("detach", FOREIGN_GROUP, "--netns", netns);
	/* The kept connections are served too. */
	for (i = 0; i < clients.nr; i++) {
		cr_expect_eq(client_send(&clients.items[i], "/"), 0);
		cr_expect_eq(client_receive(&clients.items[i]), 0);
	}
	clients_close(&clients, EVERY_WORKER);
	expect_untouched(&foreign_get()->endpoint, "detach");
}
