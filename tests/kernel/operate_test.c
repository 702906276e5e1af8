/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Weights and draining of the workers of a group that serves: the program as a person runs it, and
 * where the next connections go.
 */
#include "base/cleanup.h"
#include "kernel/values.h"
#include "steering/names.h"
#include "support/clients.h"
#include "support/plain_group.h"
#include "support/program.h"
#include "support/sandbox.h"
#include "support/scene.h"
#include "support/steered.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

TestSuite(operate, .init = scene_enter, .timeout = TEST_SECONDS);

#define WORKER_BYTES 64

/* Starts this many workers and steers them. */
static void begin(struct scene *scene, struct steered *steered, const char *nr_workers,
		  enum policy policy)
{
	scene_start(scene, "--workers", nr_workers);
	steer(steered, &scene->servers.endpoint, policy);
}

/* The worker with this number by its pid. */
static const char *pid_format(const struct scene *scene, size_t number, char ret_text[NUMBER_BYTES])
{
	return number_format((uint64_t)scene->servers.pids[number], ret_text);
}

static void row_of(const struct steered *steered, const struct scene *scene, size_t number,
		   struct worker *ret_worker)
{
	worker_of_slot(steered, slot_of_pid(steered, scene->servers.pids[number]), ret_worker);
}

Test(operate, a_drained_worker_gets_nothing_by_any_policy_that_selects)
{
	char pid[NUMBER_BYTES], pair[64];
	struct steered steered;
	struct scene scene;
	uint32_t policy;

	begin(&scene, &steered, "3", POLICY_LEAST_LOADED);
	scene_says(&scene, "drain", pid_format(&scene, 0, pid), NULL, "gets no new connections");
	for (policy = 0; policy < NR_POLICIES; policy++) {
		struct clients clients CLEANUP(clients_done) = {};

		if (policy == POLICY_HASH)
			continue;
		snprintf(pair, sizeof(pair), "policy=%s", policy_name(policy));
		scene_says(&scene, "set", pair, "slow-start=0", scene.group);
		clients_hold(&clients, &scene.servers.endpoint, 30);
		cr_expect_eq(clients_of_worker(&clients, 0), 0, "%s gives it %zu", pair,
			     clients_of_worker(&clients, 0));
	}
}

Test(operate, when_all_workers_drain_they_share_and_the_program_says_so)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct said said CLEANUP(said_done) = {};
	struct steered steered;
	struct scene scene;

	begin(&scene, &steered, "2", POLICY_LEAST_LOADED);
	scene_says(&scene, "drain", "slot:0", NULL, "(slot 0) gets no new connections");
	program_run(&said, "drain", scene.group, "slot:1", "--netns", scene.netns);
	expect_done(&said, "drain", "(slot 1) gets no new connections");
	cr_expect(strstr(said.error, "every worker of 127.0.0.1:") != NULL, "%s", said.error);
	clients_hold(&clients, &scene.servers.endpoint, 10);
	cr_expect_eq(clients_of_worker(&clients, 0), 5);
}

Test(operate, a_worker_that_the_hash_serves_is_drained_with_a_warning)
{
	struct said said CLEANUP(said_done) = {};
	struct steered steered;
	struct scene scene;

	begin(&scene, &steered, "2", POLICY_HASH);
	program_run(&said, "drain", scene.group, "slot:1", "--netns", scene.netns);
	expect_done(&said, "drain", "gets no new connections");
	cr_expect(strstr(said.error, "the kernel's hash serves") != NULL, "%s", said.error);
}

Test(operate, a_resumed_worker_gets_connections_again)
{
	struct clients clients CLEANUP(clients_done) = {};
	char pid[NUMBER_BYTES];
	struct steered steered;
	struct scene scene;

	begin(&scene, &steered, "2", POLICY_LEAST_CONN);
	pid_format(&scene, 0, pid);
	scene_says(&scene, "resume", pid, NULL, "was not draining; nothing changed");
	scene_says(&scene, "drain", pid, NULL, "it holds 0 connections\n");
	clients_hold(&clients, &scene.servers.endpoint, 4);
	scene_says(&scene, "drain", pid, NULL, "drains already");
	scene_says(&scene, "resume", pid, NULL, "gets new connections again");
	clients_hold(&clients, &scene.servers.endpoint, 4);
	cr_expect_eq(clients_of_worker(&clients, 0), 4);
}

Test(operate, a_worker_may_be_named_by_slot_pid_or_command_and_pid)
{
	char words[5][WORKER_BYTES];
	struct steered steered;
	struct worker worker;
	struct scene scene;
	uint32_t slot;
	size_t i;
	int pid;

	begin(&scene, &steered, "3", POLICY_LEAST_LOADED);
	slot = slot_of_pid(&steered, scene.servers.pids[1]);
	pid = scene.servers.pids[1];
	snprintf(words[0], WORKER_BYTES, "%u", slot);
	snprintf(words[1], WORKER_BYTES, "slot:%u", slot);
	snprintf(words[2], WORKER_BYTES, "%d", pid);
	snprintf(words[3], WORKER_BYTES, "pid:%d", pid);
	snprintf(words[4], WORKER_BYTES, "epoll-worker:%d", pid);
	for (i = 0; i < 5; i++) {
		scene_says(&scene, "drain", words[i], NULL, "gets no new connections from now on");
		row_of(&steered, &scene, 1, &worker);
		cr_expect_eq(worker.flags, WORKER_DRAINING, "%s", words[i]);
		scene_says(&scene, "resume", words[i], NULL, "again");
		row_of(&steered, &scene, 1, &worker);
		cr_expect_eq(worker.flags, 0, "%s", words[i]);
	}
}

Test(operate, several_workers_of_one_process_are_refused_with_their_slots)
{
	char pid[NUMBER_BYTES], expected[512];
	struct said said CLEANUP(said_done) = {};
	struct steered steered;
	struct scene scene;

	scene_start(&scene, "--workers", "2", "--threads");
	steer(&steered, &scene.servers.endpoint, POLICY_LEAST_LOADED);
	pid_format(&scene, 0, pid);
	program_run(&said, "drain", scene.group, pid, "--netns", scene.netns);
	snprintf(expected, sizeof(expected),
		 "socksteer: %s: process %s is several workers; name one by its slot:\n"
		 "  slot:0  epoll-worker:%s\n"
		 "  slot:1  epoll-worker:%s\n",
		 scene.group, pid, pid, pid);
	cr_expect_eq(said.code, EXIT_USAGE);
	cr_expect_str_eq(said.error, expected);
	scene_says(&scene, "drain", "slot:1", NULL, "(slot 1) gets no new connections");
}

Test(operate, an_unknown_worker_and_a_group_that_is_not_steered_are_exit_code_4)
{
	struct said unknown CLEANUP(said_done) = {}, detached CLEANUP(said_done) = {};
	struct steered steered;
	struct scene scene;

	begin(&scene, &steered, "2", POLICY_LEAST_LOADED);
	program_run(&unknown, "weight", scene.group, "nginx:7", "3", "--netns", scene.netns);
	cr_expect_eq(unknown.code, EXIT_NOTHING);
	cr_expect(strstr(unknown.error, "has no worker \"nginx:7\"; it has:\n  slot:0  epoll-w"),
		  "%s", unknown.error);
	steered_detach(&steered);
	program_run(&detached, "drain", scene.group, "0", "--netns", scene.netns);
	expect_refused(&detached, "detached", EXIT_NOTHING, "is not steered");
}

Test(operate, weights_1_and_3_share_connections_1_to_3)
{
	struct clients clients CLEANUP(clients_done) = {};
	char pid[NUMBER_BYTES];
	struct steered steered;
	struct scene scene;

	begin(&scene, &steered, "2", POLICY_LEAST_CONN);
	scene_says(&scene, "weight", pid_format(&scene, 1, pid), "3",
		   "has weight 3 from now on, it had 1\n");
	clients_hold(&clients, &scene.servers.endpoint, 40);
	cr_expect_eq(clients_of_worker(&clients, 0), 10);
	cr_expect_eq(clients_of_worker(&clients, 1), 30);
	scene_says(&scene, "status", "--json", NULL, "\"weight\": 3");
}

Test(operate, what_is_done_to_a_worker_is_done_and_said_for_all_its_groups)
{
	struct plain_group first, second;
	struct epoll_event event = { .events = EPOLLIN };
	struct said said CLEANUP(said_done) = {};
	struct steered steered, other;
	char netns[NUMBER_BYTES], says[128];
	struct worker worker;
	uint32_t slot;
	size_t i;

	plain_group_init(&first, "127.0.0.1", "0");
	plain_group_add_watched(&first, 2, PLAIN_BACKLOG);
	plain_group_init(&second, "127.0.0.2", "0");
	for (i = 0; i < 2; i++) {
		plain_group_add(&second, PLAIN_BACKLOG);
		cr_assert_eq(epoll_ctl(first.epolls[i], EPOLL_CTL_ADD, second.listeners[i], &event),
			     0, "%s", strerror(errno));
	}
	steer(&steered, &first.endpoint, POLICY_LEAST_LOADED);
	steer(&other, &second.endpoint, POLICY_LEAST_LOADED);
	slot = slot_of_cookie(&other, socket_cookie(second.listeners[0]));
	network_format(netns);
	program_run(&said, "drain", other.text, slot ? "slot:1" : "slot:0", "--netns", netns);
	snprintf(says, sizeof(says), "; also drains %s\n", steered.text);
	expect_done(&said, "drain", says);
	slot = slot_of_cookie(&steered, socket_cookie(first.listeners[0]));
	worker_of_slot(&steered, slot, &worker);
	cr_expect_eq(worker.flags, WORKER_DRAINING);
}

/* What a test waits for: that many listeners in slots. */
struct expected {
	const struct steered *steered;
	size_t nr_members;
};

static bool has_members(void *argument)
{
	const struct expected *expected = argument;

	return steered_nr_members(expected->steered) == expected->nr_members;
}

static void expect_drained_and_heavy(const struct steered *steered, const struct scene *scene,
				     const char *when)
{
	struct worker worker;

	row_of(steered, scene, 0, &worker);
	cr_expect_eq(worker.flags, WORKER_DRAINING, "%s", when);
	cr_expect_eq(worker.weight, 7, "%s", when);
}

Test(operate, weight_and_draining_outlast_an_attach_and_a_daemon_that_adds_listeners)
{
	struct said said CLEANUP(said_done) = {};
	struct servers joined, again;
	struct expected expected;
	struct steered steered;
	struct program daemon;
	char pid[NUMBER_BYTES];
	struct scene scene;

	begin(&scene, &steered, "2", POLICY_LEAST_LOADED);
	scene_says(&scene, "weight", pid_format(&scene, 0, pid), "7", "has weight 7");
	scene_says(&scene, "drain", pid, NULL, "gets no new connections");
	servers_start(&joined, "--workers", "1", "--port", scene.port + 1);
	steer_again(&steered);
	expect_drained_and_heavy(&steered, &scene, "attach");
	program_start(&daemon, NULL,
		      (const char *const[]){ "run", scene.port, "--netns", scene.netns, NULL });
	servers_start(&again, "--workers", "1", "--port", scene.port + 1);
	expected = (struct expected){ &steered, 4 };
	cr_assert(wait_until(has_members, &expected, DEADLINE_MS));
	expect_drained_and_heavy(&steered, &scene, "run");
	kill(daemon.pid, SIGTERM);
	program_wait(&daemon, &said);
	cr_expect_eq(said.code, EXIT_DONE, "%s", said.error);
}

static uint32_t row_number(const struct steered *steered, pid_t pid)
{
	struct member member;

	cr_assert_eq(value_read(steered->maps.members, slot_of_pid(steered, pid), &member), 0);
	return member.worker;
}

/* A killed worker's listener closes a moment later. */
static bool has_members_after_an_attach(void *argument)
{
	const struct expected *expected = argument;
	struct steered steered = *expected->steered;

	steer_again(&steered);
	return has_members(argument);
}

Test(operate, a_row_that_gets_a_new_owner_starts_undrained_with_weight_1)
{
	struct expected expected;
	struct steered steered;
	struct servers joined;
	char pid[NUMBER_BYTES];
	struct worker worker;
	struct scene scene;
	uint32_t row;

	begin(&scene, &steered, "3", POLICY_LEAST_LOADED);
	scene_says(&scene, "weight", pid_format(&scene, 0, pid), "7", "has weight 7");
	scene_says(&scene, "drain", pid, NULL, "gets no new connections");
	row = row_number(&steered, scene.servers.pids[0]);
	servers_kill(&scene.servers, 0, SIGKILL);
	expected = (struct expected){ &steered, 2 };
	cr_assert(wait_until(has_members_after_an_attach, &expected, DEADLINE_MS));
	servers_start(&joined, "--workers", "1", "--port", scene.port + 1);
	steer_again(&steered);
	cr_assert_eq(row_number(&steered, joined.pids[0]), row);
	worker_of_slot(&steered, slot_of_pid(&steered, joined.pids[0]), &worker);
	cr_expect_eq(worker.flags, 0);
	cr_expect_eq(worker.weight, 1);
}
