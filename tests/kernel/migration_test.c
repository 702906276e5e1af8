/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A listener that closes: what waits in its queue moves to the others.
 */
#include "support/clients.h"
#include "support/plain_group.h"
#include "support/sandbox.h"
#include "support/servers.h"
#include "support/steered.h"

#include <criterion/criterion.h>
#include <string.h>

#define NR_QUEUED 5

TestSuite(migration, .init = quick_sandbox_enter, .timeout = TEST_SECONDS);

/* Two workers with 40 connections between them, and one that hangs, with NR_QUEUED in its queue. */
struct scene {
	struct servers servers;
	struct steered steered;
	struct clients held;
	struct clients queued;
	pid_t hanging;
};

/*
 * Connections go to the one that hangs, because it holds the fewest: that the hash gave one of the
 * others fewer than NR_QUEUED of 40 happens once in millions.
 */
static void scene_start(struct scene *scene)
{
	size_t i;

	memset(&scene->held, 0, sizeof(scene->held));
	memset(&scene->queued, 0, sizeof(scene->queued));
	servers_start(&scene->servers, "--workers", "2");
	clients_hold(&scene->held, &scene->servers.endpoint, 40);
	scene->hanging = hanging_worker_start(&scene->servers.endpoint, PLAIN_BACKLOG);
	steer(&scene->steered, &scene->servers.endpoint, POLICY_LEAST_CONN);
	clients_connect(&scene->queued, &scene->servers.endpoint, NR_QUEUED);
	await_held(&scene->steered, slot_of_pid(&scene->steered, scene->hanging), NR_QUEUED);
	for (i = 0; i < NR_QUEUED; i++)
		cr_assert_eq(client_send(&scene->queued.items[i], "/"), 0);
}

/*
 * Kernels from 5.14 up to the fix of April 2026 move a connection without waking its new owner,
 * which finds it when something else wakes it. Connections to each worker do that.
 */
static void wake_everyone(struct scene *scene)
{
	struct clients waking CLEANUP(clients_done) = {};

	steered_set_policy(&scene->steered, POLICY_ROUND_ROBIN);
	clients_hold(&waking, &scene->servers.endpoint, 4);
	cr_expect_eq(clients_fewest(&waking, 2), 2);
}

Test(migration, connections_queued_on_a_worker_that_exits_are_answered_by_others)
{
	struct counts before;
	struct scene scene;
	size_t i;
	int err;

	scene_start(&scene);
	steered_count(&scene.steered, &before);
	hanging_worker_end(scene.hanging);
	expect_outcomes(&scene.steered, &before, (struct outcomes){ .migrated = NR_QUEUED });
	expect_loads(&scene.steered, &before, (struct load){ .migrated = NR_QUEUED });
	wake_everyone(&scene);
	for (i = 0; i < NR_QUEUED; i++) {
		err = client_receive(&scene.queued.items[i]);
		cr_assert_eq(err, 0, "connection %zu: %s", i, strerror(-err));
		cr_expect_lt(servers_find(&scene.servers, scene.queued.items[i].pid), 2);
	}
	clients_done(&scene.held);
	clients_done(&scene.queued);
}
