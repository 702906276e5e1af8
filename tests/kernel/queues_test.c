/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Full accept queues: the kernel drops what is aimed at one, although a sibling has room.
 */
#include "support/clients.h"
#include "support/plain_group.h"
#include "support/sandbox.h"
#include "support/steered.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define SHORT_BACKLOG 3

TestSuite(queues, .init = quick_sandbox_enter, .timeout = TEST_SECONDS);

/* A worker that does not accept, with a short queue, beside one with a long queue. */
static void start_short_and_long(struct plain_group *group)
{
	plain_group_init(group, "127.0.0.1", "0");
	plain_group_add_watched(group, 1, SHORT_BACKLOG);
	plain_group_add_watched(group, 1, PLAIN_BACKLOG);
}

/* Sends a SYN and does not wait for the answer. The connection ends with the test. */
static void knock(const struct endpoint *to)
{
	int fd = socket(to->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	cr_assert_geq(fd, 0);
	cr_assert(!connect(fd, (const struct sockaddr *)&to->address, to->nr_address_bytes) ||
			  errno == EINPROGRESS,
		  "connect: %s", strerror(errno));
}

static bool has_overflows(void *argument)
{
	return netstat_read("ListenOverflows") > *(const uint64_t *)argument;
}

Test(queues, a_full_queue_is_never_aimed_at_while_another_has_room)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct plain_group group;
	struct steered steered;
	uint64_t overflows;
	size_t i;

	start_short_and_long(&group);
	steer(&steered, &group.endpoint, POLICY_LEAST_LOADED);
	clients_connect(&clients, &group.endpoint, 50);
	await_held(&steered, EVERY_SLOT, 50);
	overflows = netstat_read("ListenOverflows");
	cr_expect_eq(overflows, 0);
	cr_expect_eq(steered_held(&steered,
				  slot_of_cookie(&steered, socket_cookie(group.listeners[0]))),
		     SHORT_BACKLOG);

	/* The hash knows nothing of queues. With 20 of them one meets the short queue, or a wonder. */
	steered_set_policy(&steered, POLICY_HASH);
	for (i = 0; i < 20; i++)
		knock(&group.endpoint);
	cr_expect(wait_until(has_overflows, &overflows, DEADLINE_MS));
}

Test(queues, every_place_is_used_before_anything_overflows)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct plain_group group;
	struct steered steered;
	struct counts before;

	plain_group_init(&group, "127.0.0.1", "0");
	plain_group_add_watched(&group, 4, SHORT_BACKLOG);
	steer(&steered, &group.endpoint, POLICY_LEAST_LOADED);
	steered_count(&steered, &before);
	/* A queue takes one more than its backlog says. */
	clients_connect(&clients, &group.endpoint, (size_t)4 * (SHORT_BACKLOG + 1));
	await_held(&steered, EVERY_SLOT, (size_t)4 * (SHORT_BACKLOG + 1));
	expect_outcomes(&steered, &before, (struct outcomes){ .selected = 16 });
	cr_expect_eq(netstat_read("ListenOverflows"), 0);
}
