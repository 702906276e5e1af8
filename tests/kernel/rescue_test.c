/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rescue: what waits for a worker that hangs is answered by others, and nothing else changes.
 */
#include "base/cleanup.h"
#include "support/hanging.h"
#include "support/program.h"
#include "support/sandbox.h"

#include <criterion/criterion.h>
#include <string.h>

#define NR_QUEUED 50

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
