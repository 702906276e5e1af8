/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rescue: what waits for a worker that hangs is answered by others, and nothing else changes.
 */
#include "base/cleanup.h"
#include "kernel/relisten.h"
#include "kernel/values.h"
#include "support/hanging.h"
#include "support/plain_group.h"
#include "support/program.h"
#include "support/sandbox.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <linux/filter.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define NR_QUEUED 50

#define STUCK_AFTER_NS 100000000

TestSuite(rescue, .init = scene_enter, .timeout = TEST_SECONDS);

static void rescue(const struct hanging *hanging, struct said *ret_said)
{
	program_run(ret_said, "rescue", hanging->scene.group, hanging->pid, "--netns",
		    hanging->scene.netns);
}

static void expect_audit_is_clean(const struct hanging *hanging)
{
	program_succeeds("audit", hanging->scene.group, "--netns", hanging->scene.netns);
}

Test(rescue, all_that_waits_for_a_hanging_worker_is_answered_by_others_and_it_keeps_its_slot)
{
	struct said said CLEANUP(said_done) = {};
	struct clients later CLEANUP(clients_done) = {};
	struct hanging hanging;
	struct member before, after;
	struct counts counts;

	hanging_start(&hanging, NR_QUEUED);
	hanging_member(&hanging, &before);
	steered_count(&hanging.steered, &counts);
	rescue(&hanging, &said);
	expect_done(&said, "rescue", ": moved 50 connections of epoll-worker:");
	cr_log_info("%s", said.output);
	expect_outcomes(&hanging.steered, &counts, (struct outcomes){ .migrated = NR_QUEUED });
	expect_answered_by_others(&hanging, "rescue");
	expect_same_member(&hanging, &before, "rescue");
	hanging_member(&hanging, &after);
	cr_expect_eq(after.nr_rescues, before.nr_rescues + 1);
	expect_audit_is_clean(&hanging);
	await_held(&hanging.steered, hanging.slot, 1);
	hanging_continue(&hanging);
	clients_hold(&later, &hanging.scene.servers.endpoint, 5);
	cr_expect_eq(clients_of_worker(&later, 0), 5);
	clients_done(&later);
	hanging_done(&hanging);
}

static void set_flags(const struct hanging *hanging, size_t worker, uint32_t flags)
{
	uint32_t slot = slot_of_pid(&hanging->steered, hanging->scene.servers.pids[worker]);
	struct worker row;

	worker_of_slot(&hanging->steered, slot, &row);
	row.flags = flags;
	worker_of_slot_set(&hanging->steered, slot, &row);
}

struct stuck_wait {
	const struct hanging *hanging;
	uint32_t slot;
	bool is_stuck;
};

static bool is_as_wanted(void *argument)
{
	const struct stuck_wait *wait = argument;
	struct member member;
	uint32_t result;

	cr_assert_eq(group_maps_survey(&wait->hanging->steered.maps, &result), 0);
	cr_assert_eq(value_read(wait->hanging->steered.maps.members, wait->slot, &member), 0);
	return (member.stuck_ns != 0) == wait->is_stuck;
}

static void await_stuck(const struct hanging *hanging, size_t worker, bool is_stuck)
{
	struct stuck_wait wait = {
		.hanging = hanging,
		.slot = slot_of_pid(&hanging->steered, hanging->scene.servers.pids[worker]),
		.is_stuck = is_stuck,
	};

	cr_assert(wait_until(is_as_wanted, &wait, DEADLINE_MS), "worker %zu is%s stuck", worker,
		  is_stuck ? " not" : "");
}

/* Stops a second worker, and has it stuck with one connection, which others are not given. */
static void hang_too(const struct hanging *hanging, size_t worker, struct clients *clients)
{
	cr_assert_eq(kill(hanging->scene.servers.pids[worker], SIGSTOP), 0);
	set_flags(hanging, 0, WORKER_DRAINING);
	set_flags(hanging, 1, WORKER_DRAINING);
	clients_connect(clients, &hanging->scene.servers.endpoint, 1);
	await_stuck(hanging, worker, true);
	set_flags(hanging, 0, 0);
}

Test(rescue, where_no_other_worker_is_well_nothing_is_moved)
{
	struct said refused CLEANUP(said_done) = {}, done CLEANUP(said_done) = {};
	struct clients elsewhere CLEANUP(clients_done) = {};
	struct hanging hanging;
	struct counts counts;
	struct member before;

	hanging_start(&hanging, NR_QUEUED);
	hanging_member(&hanging, &before);
	steered_set_stuck_after(&hanging.steered, STUCK_AFTER_NS);
	hang_too(&hanging, 2, &elsewhere);
	steered_count(&hanging.steered, &counts);
	rescue(&hanging, &refused);
	expect_refused(&refused, "one drains and one is stuck", EXIT_NOTHING,
		       "has no other worker that could take the connections");
	expect_outcomes(&hanging.steered, &counts, (struct outcomes){});
	expect_same_member(&hanging, &before, "refused");
	cr_assert_eq(kill(hanging.scene.servers.pids[2], SIGCONT), 0);
	await_stuck(&hanging, 2, false);
	rescue(&hanging, &done);
	expect_done(&done, "one is well", "moved 50 connections");
	expect_answered_by_others(&hanging, "one is well");
	hanging_done(&hanging);
}

Test(rescue, a_group_that_has_another_program_is_left_alone)
{
	/* Chooses the first listener. */
	struct sock_filter instruction = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog program = { .len = 1, .filter = &instruction };
	struct said said CLEANUP(said_done) = {};
	struct steered steered;
	struct plain_group group;
	char netns[NUMBER_BYTES];

	plain_group_init(&group, "127.0.0.1", "0");
	plain_group_add_watched(&group, 2, PLAIN_BACKLOG);
	steer(&steered, &group.endpoint, POLICY_LEAST_CONN);
	cr_assert_eq(setsockopt(group.listeners[0], SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program,
				sizeof(program)),
		     0);
	program_run(&said, "rescue", steered.text, "slot:0", "--netns", network_format(netns));
	expect_refused(&said, "another program", EXIT_NOTHING, "is not steered at the moment");
	steered_done(&steered);
	plain_group_done(&group);
}

static void expect_number(const json_t *object, const char *name, json_int_t expected)
{
	cr_expect_eq(json_integer_value(json_object_get(object, name)), expected, "%s: %lld", name,
		     json_integer_value(json_object_get(object, name)));
}

Test(rescue, json_says_what_was_done_to_each_listener)
{
	struct said said CLEANUP(said_done) = {};
	struct hanging hanging;
	json_t *document, *listener;

	hanging_start(&hanging, 7);
	program_run(&said, "rescue", hanging.scene.group, hanging.pid, "--json", "--netns",
		    hanging.scene.netns);
	document = json_loads(said.output, 0, NULL);
	cr_assert(document, "%s%s", said.output, said.error);
	expect_number(document, "moved", 7);
	listener = json_array_get(json_object_get(document, "listeners"), 0);
	expect_number(listener, "slot", hanging.slot);
	expect_number(listener, "cookie", (json_int_t)hanging.cookie);
	expect_number(listener, "moved", 7);
	expect_number(listener, "queued", 0);
	cr_expect(json_is_false(json_object_get(listener, "stuck")));
	cr_expect_gt(json_integer_value(json_object_get(listener, "duration_ns")), 0);
	json_decref(document);
	expect_answered_by_others(&hanging, "json");
	hanging_done(&hanging);
}

/* Each in the queue of one of the first two listeners, which the third is to get. */
static void queue_on_both(const struct plain_group *group, struct clients *clients)
{
	uint32_t queued[2], backlog;

	clients_connect(clients, &group->endpoint, NR_QUEUED);
	listener_read_counts(group->listeners[0], &queued[0], &backlog);
	listener_read_counts(group->listeners[1], &queued[1], &backlog);
	cr_assert_gt(queued[0], 0);
	cr_assert_gt(queued[1], 0);
	cr_assert_eq(queued[0] + queued[1], NR_QUEUED);
}

Test(rescue, all_listeners_of_a_worker_are_rescued_and_the_others_are_not)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct epoll_event event = { .events = EPOLLIN };
	struct said said CLEANUP(said_done) = {};
	uint32_t queued, backlog, slot;
	struct plain_group group;
	struct steered steered;
	char netns[NUMBER_BYTES];
	struct worker worker;

	plain_group_init(&group, "127.0.0.1", "0");
	plain_group_add_watched(&group, 1, PLAIN_BACKLOG);
	plain_group_add(&group, PLAIN_BACKLOG);
	cr_assert_eq(epoll_ctl(group.epolls[0], EPOLL_CTL_ADD, group.listeners[1], &event), 0);
	queue_on_both(&group, &clients);
	plain_group_add_watched(&group, 1, PLAIN_BACKLOG);
	steer(&steered, &group.endpoint, POLICY_LEAST_CONN);
	slot = slot_of_cookie(&steered, socket_cookie(group.listeners[1]));
	cr_assert_eq(slot, 1);
	program_run(&said, "rescue", steered.text, "slot:1", "--netns", network_format(netns));
	expect_done(&said, "rescue", " (slots 0, 1) to other workers in ");
	expect_done(&said, "rescue", "moved 50 connections");
	cr_expect(strstr(said.error, "was not stuck"), "%s", said.error);
	listener_read_counts(group.listeners[2], &queued, &backlog);
	cr_expect_eq(queued, NR_QUEUED);
	worker_of_slot(&steered, slot, &worker);
	cr_expect_eq(worker.flags, 0);
	steered_done(&steered);
	plain_group_done(&group);
}

Test(rescue, a_worker_with_nothing_in_its_queue_is_not_touched)
{
	struct said said CLEANUP(said_done) = {};
	struct hanging hanging;
	struct counts counts;
	struct member member;

	hanging_start(&hanging, 0);
	hanging_continue(&hanging);
	steered_count(&hanging.steered, &counts);
	rescue(&hanging, &said);
	expect_done(&said, "nothing queued", ": nothing waits for epoll-worker:");
	expect_outcomes(&hanging.steered, &counts, (struct outcomes){});
	hanging_member(&hanging, &member);
	cr_expect_eq(member.nr_rescues, 0);
	hanging_done(&hanging);
}

Test(rescue, a_worker_that_is_rescued_again_and_again_loses_nothing)
{
	struct hanging hanging;
	struct member member;
	size_t i;

	hanging_start(&hanging, 1);
	for (i = 0; i < 8; i++) {
		struct said said CLEANUP(said_done) = {};

		rescue(&hanging, &said);
		expect_done(&said, "rescue", ": moved 1 connection of");
		expect_answered_by_others(&hanging, "again");
		hanging_queue(&hanging, 1);
	}
	hanging_member(&hanging, &member);
	cr_expect_eq(member.nr_rescues, 8);
	cr_expect_eq(member.rescues_in_window, 8);
	hanging_done(&hanging);
}
