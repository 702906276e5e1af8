/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups beyond the size that is compared exactly on every run: each CPU then ranks by a snapshot.
 */
#include "support/clients.h"
#include "support/plain_group.h"
#include "support/sandbox.h"
#include "support/steered.h"
#include "support/waiting.h"
#include "kernel/values.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

TestSuite(large_group, .init = quick_sandbox_enter, .timeout = TEST_SECONDS);

struct extent {
	uint64_t fewest;
	uint64_t most;
};

static struct extent extent_of_held(const struct steered *steered, uint32_t nr_slots)
{
	struct extent extent = { .fewest = UINT64_MAX };
	struct counts counts;
	uint32_t slot;

	steered_count(steered, &counts);
	for (slot = 0; slot < nr_slots; slot++) {
		uint64_t held = counts.loads[slot].opened - counts.loads[slot].closed;

		if (held < extent.fewest)
			extent.fewest = held;
		if (held > extent.most)
			extent.most = held;
	}
	return extent;
}

static void start_large(struct plain_group *group, size_t nr, struct steered *ret_steered)
{
	plain_group_init(group, "127.0.0.1", "0");
	plain_group_add_watched(group, nr, PLAIN_BACKLOG);
	steer(ret_steered, &group->endpoint, POLICY_LEAST_LOADED);
	cr_assert_eq(steered_nr_members(ret_steered), nr);
}

Test(large_group, two_hundred_workers_share_evenly)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct plain_group group;
	struct steered steered;
	struct counts before;
	struct extent extent;

	start_large(&group, 200, &steered);
	steered_count(&steered, &before);
	clients_connect(&clients, &group.endpoint, 600);
	await_held(&steered, EVERY_SLOT, 600);
	expect_outcomes(&steered, &before, (struct outcomes){ .selected = 600 });
	expect_loads(&steered, &before, (struct load){ .opened = 600, .steered = 600 });
	extent = extent_of_held(&steered, 200);
	cr_expect_geq(extent.fewest, 2);
	cr_expect_leq(extent.most, 4);
}

Test(large_group, all_of_three_hundred_listeners_are_steered)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct plain_group group;
	struct steered steered;
	struct extent extent;

	start_large(&group, 300, &steered);
	/* The second round has to fill the gaps that two CPUs left by thinking alike in the first. */
	clients_connect(&clients, &group.endpoint, 600);
	await_held(&steered, EVERY_SLOT, 600);
	extent = extent_of_held(&steered, 300);
	cr_expect_geq(extent.fewest, 1);
	cr_expect_leq(extent.most, 3);
}

/* SYNs over lo are steered on the CPU that sends them, so that one snapshot decides it all. */
static void stay_on_this_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)sched_getcpu(), &set);
	cr_assert_eq(sched_setaffinity(0, sizeof(set), &set), 0);
}

static void accept_and_close_all(const struct plain_group *group, size_t index)
{
	int fd;

	while ((fd = plain_group_accept(group, index)) >= 0)
		close(fd);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool is_past(void *argument)
{
	return now_ns() >= *(const uint64_t *)argument;
}

/* Until the snapshot is too old to be relied upon. */
static void await_refresh(const struct steered *steered)
{
	struct settings settings;
	uint64_t end_ns;

	cr_assert_eq(value_read(steered->maps.settings, 0, &settings), 0);
	end_ns = now_ns() + settings.refresh_ns;
	cr_assert(wait_until(is_past, &end_ns, DEADLINE_MS));
}

Test(large_group, a_worker_whose_connections_closed_gets_the_next_ones)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct plain_group group;
	struct steered steered;
	uint64_t held;
	uint32_t slot;

	start_large(&group, 64, &steered);
	stay_on_this_cpu();
	clients_connect(&clients, &group.endpoint, 192);
	await_held(&steered, EVERY_SLOT, 192);
	slot = slot_of_cookie(&steered, socket_cookie(group.listeners[7]));
	held = steered_held(&steered, slot);
	cr_assert_geq(held, 2);
	accept_and_close_all(&group, 7);
	cr_assert_eq(steered_held(&steered, slot), 0);
	await_refresh(&steered);
	clients_connect(&clients, &group.endpoint, held);
	await_held(&steered, slot, held);
}

Test(large_group, listeners_that_close_leave_the_others_their_connections)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct plain_group group;
	struct steered steered;
	struct counts before;
	size_t i;

	start_large(&group, 100, &steered);
	for (i = 0; i < 50; i++)
		plain_group_close(&group, i);
	steered_count(&steered, &before);
	clients_connect(&clients, &group.endpoint, 150);
	await_held(&steered, EVERY_SLOT, 150);
	expect_outcomes(&steered, &before, (struct outcomes){ .selected = 150 });
	cr_expect_leq(extent_of_held(&steered, 100).most, 4);
}
