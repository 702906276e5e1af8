/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The daemon and workers that hang: it notices them when no SYN comes, says so, and rescues what waits
 * for them where the settings say so.
 */
#include "base/cleanup.h"
#include "kernel/values.h"
#include "support/clients.h"
#include "support/daemon.h"
#include "support/hanging.h"
#include "support/plain_group.h"
#include "support/program.h"
#include "support/sandbox.h"
#include "support/steered.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <stddef.h>
#include <string.h>

#define NR_QUEUED 5

TestSuite(guard, .init = scene_enter, .timeout = TEST_SECONDS);

static void set(const struct scene *scene, const char *pair)
{
	program_succeeds("set", scene->group, pair, "--netns", scene->netns);
}

Test(guard, what_waits_for_a_hung_worker_is_rescued_without_another_connection)
{
	struct said said CLEANUP(said_done) = {};
	struct hanging hanging;
	struct program daemon;
	struct member member;

	hanging_start(&hanging, 0);
	set(&hanging.scene, "rescue=stuck");
	set(&hanging.scene, "stuck-after=1s");
	daemon_start(&daemon, NULL, &hanging.scene, NULL);
	await_steered_listeners(&hanging.scene, NR_HANGING_WORKERS);
	hanging_queue(&hanging, NR_QUEUED);
	expect_answered_by_others(&hanging, "the daemon");
	daemon_await_said(&daemon, "is stuck");
	daemon_await_said(&daemon, "rescued ");
	hanging_member(&hanging, &member);
	cr_expect_eq(member.nr_stuck, 1);
	cr_expect_eq(member.nr_rescues, 1);
	/* Its queue is empty, and still it is passed over until it is seen to live. */
	cr_expect_neq(member.stuck_ns, 0);
	hanging_continue(&hanging);
	daemon_await_said(&daemon, "takes connections again");
	daemon_stop(&daemon, &said);
	program_succeeds("audit", hanging.scene.group, "--netns", hanging.scene.netns);
	hanging_done(&hanging);
}

Test(guard, a_hung_worker_is_named_and_left_alone_when_rescue_is_off)
{
	struct said said CLEANUP(said_done) = {}, shown CLEANUP(said_done) = {};
	struct hanging hanging;
	struct program daemon;
	struct member member;
	size_t i;

	hanging_start(&hanging, NR_QUEUED);
	set(&hanging.scene, "stuck-after=1s");
	daemon_start(&daemon, NULL, &hanging.scene, NULL);
	daemon_await_said(&daemon, "is stuck: it does not accept what waits in its queue");
	program_run(&shown, "status", hanging.scene.group, "--netns", hanging.scene.netns);
	expect_done(&shown, "status", "stuck ");
	hanging_continue(&hanging);
	daemon_await_said(&daemon, "takes connections again");
	for (i = 0; i < NR_QUEUED; i++) {
		cr_expect_eq(client_receive(&hanging.queued.items[i]), 0);
		cr_expect_eq(hanging.queued.items[i].worker, 0);
	}
	hanging_member(&hanging, &member);
	cr_expect_eq(member.nr_rescues, 0);
	daemon_stop(&daemon, &said);
	hanging_done(&hanging);
}

static bool is_on_trial(void *argument)
{
	struct member member;

	hanging_member(argument, &member);
	return member.trials & MEMBER_ON_TRIAL;
}

/* A worker that goes on while its listener is shut gets EINVAL, which this one does not survive. */
static bool is_rescued_twice(void *argument)
{
	struct member member;

	hanging_member(argument, &member);
	return member.nr_rescues == 2;
}

/* It is known to be slow, and so its trials take longer than stuck-after. */
Test(guard, a_trial_of_a_slow_worker_ends_before_its_queue_is_rescued)
{
	const uint64_t pace_ns = 1000000000;
	struct said said CLEANUP(said_done) = {};
	struct hanging hanging;
	struct program daemon;
	struct member member;

	hanging_start(&hanging, 0);
	set(&hanging.scene, "rescue=stuck");
	set(&hanging.scene, "stuck-after=500ms");
	set(&hanging.scene, "slow-start=0");
	cr_assert_eq(value_write_part(hanging.steered.maps.members, hanging.slot,
				      sizeof(struct member), offsetof(struct member, pace_ns),
				      &pace_ns, sizeof(pace_ns)),
		     0);
	daemon_start(&daemon, NULL, &hanging.scene, NULL);
	await_steered_listeners(&hanging.scene, NR_HANGING_WORKERS);
	hanging_queue(&hanging, NR_QUEUED);
	expect_answered_by_others(&hanging, "found stuck");
	cr_assert(wait_until(is_on_trial, &hanging, DEADLINE_MS));
	hanging_queue(&hanging, NR_QUEUED);
	expect_answered_by_others(&hanging, "on trial");
	cr_assert(wait_until(is_rescued_twice, &hanging, DEADLINE_MS));
	hanging_member(&hanging, &member);
	cr_expect_not(member.trials & MEMBER_ON_TRIAL);
	hanging_continue(&hanging);
	daemon_stop(&daemon, &said);
	hanging_done(&hanging);
}

/* A listener that its worker left, with connections in its queue. */
struct left {
	struct scene scene;
	struct steered steered;
	struct plain_group group; /* the listener */
	struct clients queued;
	uint32_t slot;
};

static void left_start(struct left *left)
{
	size_t i;

	memset(left, 0, sizeof(*left));
	scene_start(&left->scene, "--workers", "2");
	plain_group_init(&left->group, "127.0.0.1", left->scene.port + 1);
	plain_group_add_watched(&left->group, 1, PLAIN_BACKLOG);
	steer(&left->steered, &left->scene.servers.endpoint, POLICY_ROUND_ROBIN);
	left->slot = slot_of_cookie(&left->steered, socket_cookie(left->group.listeners[0]));
	clients_connect(&left->queued, &left->scene.servers.endpoint, 3 * NR_QUEUED);
	for (i = 0; i < left->queued.nr; i++)
		cr_assert_eq(client_send(&left->queued.items[i], "/"), 0);
	await_held(&left->steered, left->slot, NR_QUEUED);
	close(left->group.epolls[0]);
	left->group.epolls[0] = -1;
}

static bool is_stuck(void *argument)
{
	const struct left *left = argument;
	struct member member;

	cr_assert_eq(value_read(left->steered.maps.members, left->slot, &member), 0);
	return member.stuck_ns != 0;
}

Test(guard, a_listener_that_nobody_watches_is_rescued_only_when_told_to)
{
	struct said said CLEANUP(said_done) = {};
	struct program daemon;
	struct member member;
	struct left left;
	size_t i;

	left_start(&left);
	set(&left.scene, "stuck-after=1s");
	set(&left.scene, "rescue=stuck");
	daemon_start(&daemon, NULL, &left.scene, NULL);
	cr_assert(wait_until(is_stuck, &left, DEADLINE_MS));
	daemon_await_said(&daemon, "is stuck");
	cr_assert_eq(value_read(left.steered.maps.members, left.slot, &member), 0);
	cr_expect_eq(member.nr_rescues, 0);
	set(&left.scene, "rescue=stuck+unattended");
	for (i = 0; i < left.queued.nr; i++)
		cr_expect_eq(client_receive(&left.queued.items[i]), 0, "connection %zu", i);
	daemon_await_said(&daemon, "rescued ");
	cr_assert_eq(value_read(left.steered.maps.members, left.slot, &member), 0);
	cr_expect_eq(member.nr_rescues, 1);
	daemon_stop(&daemon, &said);
	clients_done(&left.queued);
	plain_group_done(&left.group);
	steered_done(&left.steered);
}
