/* SPDX-License-Identifier: GPL-2.0-only */
#include "support/hanging.h"
#include "kernel/values.h"
#include "socksteer/policy.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

/* With one connection each, a worker of this weight is given every next one by least-conn. */
#define WEIGHT MAX_WEIGHT

static void make_heavy(const struct hanging *hanging)
{
	struct worker worker;

	worker_of_slot(&hanging->steered, hanging->slot, &worker);
	worker.weight = WEIGHT;
	worker.cost = policy_cost(WEIGHT);
	worker_of_slot_set(&hanging->steered, hanging->slot, &worker);
}

void hanging_queue(struct hanging *hanging, size_t nr)
{
	size_t i;

	clients_connect(&hanging->queued, &hanging->scene.servers.endpoint, nr);
	for (i = hanging->queued.nr - nr; i < hanging->queued.nr; i++)
		cr_assert_eq(client_send(&hanging->queued.items[i], "/"), 0);
}

void hanging_start(struct hanging *hanging, size_t nr_queued)
{
	struct member member;
	pid_t pid;

	memset(hanging, 0, sizeof(*hanging));
	scene_start(&hanging->scene, "--workers", "3");
	pid = hanging->scene.servers.pids[0];
	number_format((uint64_t)pid, hanging->pid);
	steer(&hanging->steered, &hanging->scene.servers.endpoint, POLICY_LEAST_CONN);
	hanging->slot = slot_of_pid(&hanging->steered, pid);
	hanging_member(hanging, &member);
	hanging->cookie = member.cookie;
	clients_hold(&hanging->held, &hanging->scene.servers.endpoint, NR_HANGING_WORKERS);
	cr_assert_eq(clients_fewest(&hanging->held, NR_HANGING_WORKERS), 1);
	make_heavy(hanging);
	cr_assert_eq(kill(pid, SIGSTOP), 0);
	hanging_queue(hanging, nr_queued);
	await_held(&hanging->steered, hanging->slot, 1 + nr_queued);
}

void hanging_done(struct hanging *hanging)
{
	hanging_continue(hanging);
	clients_done(&hanging->held);
	clients_done(&hanging->queued);
	steered_done(&hanging->steered);
	servers_stop(&hanging->scene.servers);
}

void hanging_continue(const struct hanging *hanging)
{
	cr_assert_eq(kill(hanging->scene.servers.pids[0], SIGCONT), 0);
}

void expect_answered_by_others(struct hanging *hanging, const char *what)
{
	size_t i;
	int err;

	for (i = 0; i < hanging->queued.nr; i++) {
		err = client_receive(&hanging->queued.items[i]);
		cr_assert_eq(err, 0, "%s: connection %zu: %s", what, i, strerror(-err));
		cr_expect_neq(hanging->queued.items[i].worker, 0, "%s: connection %zu", what, i);
	}
	clients_done(&hanging->queued);
}

void hanging_member(const struct hanging *hanging, struct member *ret_member)
{
	cr_assert_eq(value_read(hanging->steered.maps.members, hanging->slot, ret_member), 0);
}

void expect_same_member(const struct hanging *hanging, const struct member *before,
			const char *what)
{
	struct worker worker;
	struct member now;
	uint64_t cookie = 0;

	hanging_member(hanging, &now);
	cr_expect_eq(slot_read(hanging->steered.maps.listeners, hanging->slot, &cookie), 0, "%s",
		     what);
	cr_expect_eq(cookie, hanging->cookie, "%s", what);
	cr_expect_eq(now.cookie, before->cookie, "%s", what);
	cr_expect_eq(now.worker, before->worker, "%s", what);
	cr_expect_eq(now.listener, before->listener, "%s", what);
	cr_expect_eq(now.joined_ns, before->joined_ns, "%s", what);
	cr_expect_eq(now.rescue_pid, 0, "%s", what);
	worker_of_slot(&hanging->steered, hanging->slot, &worker);
	cr_expect_eq(worker.flags, 0, "%s", what);
}
