/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * drain --wait: how it ends, what it says, and that the worker drains on whatever ends it.
 */
#include "base/cleanup.h"
#include "support/clients.h"
#include "support/plain_group.h"
#include "support/program.h"
#include "support/sandbox.h"
#include "support/scene.h"
#include "support/steered.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

TestSuite(drain, .init = scene_enter, .timeout = TEST_SECONDS);

/* Two workers that hold two connections each; the first is the one that is drained. */
struct draining {
	struct scene scene;
	struct steered steered;
	struct clients clients;
	char pid[NUMBER_BYTES];
	uint32_t slot;
	struct program program; /* that waits */
};

static void draining_done(struct draining *draining)
{
	clients_done(&draining->clients);
}

static void begin(struct draining *draining)
{
	*draining = (struct draining){};
	scene_start(&draining->scene, "--workers", "2");
	steer(&draining->steered, &draining->scene.servers.endpoint, POLICY_LEAST_CONN);
	clients_hold(&draining->clients, &draining->scene.servers.endpoint, 4);
	number_format((uint64_t)draining->scene.servers.pids[0], draining->pid);
	draining->slot = slot_of_pid(&draining->steered, draining->scene.servers.pids[0]);
}

static bool is_draining(void *argument)
{
	const struct draining *draining = argument;
	struct worker worker;

	worker_of_slot(&draining->steered, draining->slot, &worker);
	return worker.flags & WORKER_DRAINING;
}

/* Starts the command that waits; it has taken its first step when this returns. */
static void begin_waiting(struct draining *draining)
{
	begin(draining);
	program_start(&draining->program, NULL,
		      (const char *const[]){ "drain", draining->scene.group, draining->pid,
					     "--netns", draining->scene.netns, "--wait", NULL });
	cr_assert(wait_until(is_draining, draining, DEADLINE_MS));
}

Test(drain, waiting_ends_with_the_last_connection)
{
	struct draining draining CLEANUP(draining_done) = {};
	struct said said CLEANUP(said_done) = {};

	begin_waiting(&draining);
	clients_hold(&draining.clients, &draining.scene.servers.endpoint, 6);
	cr_expect_eq(clients_of_worker(&draining.clients, 0), 2);
	clients_close(&draining.clients, 0);
	program_wait(&draining.program, &said);
	expect_done(&said, "drain", "holds nothing any more\n");
	cr_expect(is_draining(&draining));
	cr_expect_eq(clients_of_worker(&draining.clients, 1), 8);
}

Test(drain, a_worker_that_holds_nothing_is_not_waited_for)
{
	struct draining draining CLEANUP(draining_done) = {};
	struct said said CLEANUP(said_done) = {};

	begin(&draining);
	clients_close(&draining.clients, 0);
	await_held(&draining.steered, draining.slot, 0);
	program_run(&said, "drain", draining.scene.group, draining.pid, "--netns",
		    draining.scene.netns, "--wait=0");
	expect_done(&said, "drain", "holds nothing any more\n");
	cr_expect_str_empty(said.error);
}

Test(drain, a_timeout_is_exit_code_1_and_says_how_many_are_left)
{
	struct draining draining CLEANUP(draining_done) = {};
	struct said said CLEANUP(said_done) = {};

	begin(&draining);
	program_run(&said, "drain", draining.scene.group, draining.pid, "--netns",
		    draining.scene.netns, "--wait", "200ms");
	cr_expect_eq(said.code, EXIT_FAILED);
	/* One line of progress, since nothing changes; and then the sentence. */
	cr_expect(strstr(said.error, "still holds 2 connections\nsocksteer: 127.0.0.1:"), "%s",
		  said.error);
	cr_expect(strstr(said.error, "still holds 2 connections; the time is over, and it drains "
				     "on until \"socksteer resume\"\n"),
		  "%s", said.error);
	cr_expect(is_draining(&draining));
}

Test(drain, ctrl_c_ends_the_waiting_and_not_the_draining)
{
	static const int signals[] = { SIGINT, SIGTERM };
	size_t i;

	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		struct draining draining CLEANUP(draining_done) = {};
		struct said said CLEANUP(said_done) = {};

		begin_waiting(&draining);
		kill(draining.program.pid, signals[i]);
		program_wait(&draining.program, &said);
		cr_expect_eq(said.code, EXIT_FAILED, "%d", said.code);
		cr_expect(strstr(said.error, "still holds 2 connections; the waiting was stopped, "
					     "and it drains on"),
			  "%s", said.error);
		cr_expect(is_draining(&draining));
	}
}

Test(drain, a_worker_that_ends_is_not_waited_for_any_longer)
{
	struct draining draining CLEANUP(draining_done) = {};
	struct said said CLEANUP(said_done) = {};

	begin_waiting(&draining);
	servers_kill(&draining.scene.servers, 0, SIGKILL);
	program_wait(&draining.program, &said);
	expect_done(&said, "drain", "has ended\n");
}

Test(drain, a_worker_that_is_resumed_or_detached_is_not_waited_for_any_longer)
{
	static const char *const undo[][2] = {
		{ "resume", "was resumed meanwhile" },
		{ "detach", "nobody counts what it still holds" },
	};
	size_t i;

	for (i = 0; i < 2; i++) {
		struct draining draining CLEANUP(draining_done) = {};
		struct said said CLEANUP(said_done) = {};

		begin_waiting(&draining);
		program_succeeds(undo[i][0], draining.scene.group, "--netns", draining.scene.netns,
				 i ? NULL : draining.pid);
		program_wait(&draining.program, &said);
		cr_expect_eq(said.code, EXIT_FAILED, "%s", undo[i][0]);
		cr_expect(strstr(said.error, undo[i][1]), "%s: %s", undo[i][0], said.error);
	}
}

/* The listener that has a connection in its queue. */
static size_t find_queued(const struct steered *steered, const struct plain_group *group)
{
	struct status status CLEANUP(status_done) = {};
	const struct status_group *found;
	size_t i, j;

	steered_status(steered, &status);
	found = status.groups;
	for (i = 0; i < found->nr_listeners; i++)
		for (j = 0; j < group->nr; j++)
			if (found->listeners[i].queued &&
			    found->listeners[i].cookie == socket_cookie(group->listeners[j]))
				return j;
	cr_assert_fail("no connection is queued");
	return 0;
}

/* Nobody counts what was in an accept queue before the attach, but it is there. */
Test(drain, what_was_queued_before_the_attach_is_waited_for)
{
	struct said queued CLEANUP(said_done) = {}, accepted CLEANUP(said_done) = {};
	struct clients clients CLEANUP(clients_done) = {};
	char netns[NUMBER_BYTES], worker[32];
	int fd CLEANUP(cleanup_fd) = -1;
	struct plain_group group;
	struct steered steered;
	size_t index;

	plain_group_init(&group, "127.0.0.1", "0");
	plain_group_add_watched(&group, 2, PLAIN_BACKLOG);
	clients_connect(&clients, &group.endpoint, 1);
	steer(&steered, &group.endpoint, POLICY_LEAST_LOADED);
	index = find_queued(&steered, &group);
	snprintf(worker, sizeof(worker), "slot:%u",
		 slot_of_cookie(&steered, socket_cookie(group.listeners[index])));
	network_format(netns);
	program_run(&queued, "drain", steered.text, worker, "--netns", netns, "--wait=0");
	cr_expect_eq(queued.code, EXIT_FAILED);
	cr_expect(strstr(queued.error, "still holds 1 connection;"), "%s", queued.error);
	fd = plain_group_accept(&group, index);
	cr_assert_geq(fd, 0);
	program_run(&accepted, "drain", steered.text, worker, "--netns", netns, "--wait=0");
	expect_done(&accepted, "drain", "holds nothing any more\n");
	plain_group_done(&group);
}
