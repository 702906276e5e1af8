/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups and workers out of the rows of a scan, made by hand in the shapes that real servers have.
 */
#include "steering/inventory.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define ROWS_MAX 64

/* Identities in the kernel, which are addresses there and only have to differ. */
#define SOCKET(i) (0x1000u + (i))
#define EPOLL(i) (0x2000u + (i))
#define GROUP(i) (0x3000u + (i))

struct rows {
	struct inspect_row rows[ROWS_MAX];
	size_t nr;
};

static struct inspect_row *add_row(struct rows *rows, enum row_kind kind, uint32_t pid)
{
	struct inspect_row *row = &rows->rows[rows->nr++];

	cr_assert_leq(rows->nr, (size_t)ROWS_MAX);
	*row = (struct inspect_row){
		.kind = kind,
		.pid = pid,
		.fd = (uint32_t)rows->nr,
		.start_ns = pid,
	};
	snprintf(row->comm, sizeof(row->comm), "worker-%u", pid);
	return row;
}

/* Process pid holds listener number socket, which this epoll watches: 0 for none. */
static struct inspect_row *add_listener(struct rows *rows, uint32_t pid, uint32_t socket,
					uint64_t epoll)
{
	struct inspect_row *row = add_row(rows, ROW_LISTENER, pid);

	row->socket = SOCKET(socket);
	row->cookie = 100 + socket;
	row->group = GROUP(1);
	row->group_size = 4;
	row->family = AF_INET;
	row->port = 80;
	row->netns = 7;
	row->protocol = IPPROTO_TCP;
	row->reuseport = 1;
	row->backlog = 511;
	row->epoll = epoll;
	row->waiter = epoll ? WAITER_EPOLL : WAITER_NONE;
	row->state = epoll ? STATE_IDLE : STATE_UNATTENDED;
	return row;
}

static void add_epoll(struct rows *rows, uint32_t pid, uint64_t epoll)
{
	add_row(rows, ROW_EPOLL, pid)->epoll = epoll;
}

static void set_group_size(struct rows *rows, uint32_t size)
{
	size_t i;

	for (i = 0; i < rows->nr; i++)
		rows->rows[i].group_size = size;
}

static void build(const struct rows *rows, struct inventory *ret_inventory)
{
	cr_assert_eq(inventory_build(rows->rows, rows->nr, ret_inventory), 0);
}

/* The only group of these rows. */
static const struct group *build_one(const struct rows *rows, struct inventory *ret_inventory)
{
	build(rows, ret_inventory);
	cr_assert_eq(ret_inventory->nr_groups, 1, "%zu groups", ret_inventory->nr_groups);
	return &ret_inventory->groups[0];
}

Test(inventory, no_rows_are_no_groups)
{
	struct inventory inventory = {};

	cr_assert_eq(inventory_build(NULL, 0, &inventory), 0);
	cr_expect_eq(inventory.nr_groups, 0);
	inventory_done(&inventory);
}

Test(inventory, epoll_instances_alone_are_no_groups)
{
	struct inventory inventory;
	struct rows rows = {};

	add_epoll(&rows, 10, EPOLL(1));
	build(&rows, &inventory);
	cr_expect_eq(inventory.nr_groups, 0);
	inventory_done(&inventory);
}

/* nginx: master and workers hold every listener, each worker watches its own. */
static void add_nginx(struct rows *rows, uint32_t master, uint32_t nr_workers)
{
	uint32_t pid, i;

	for (pid = master; pid <= master + nr_workers; pid++)
		for (i = 1; i <= nr_workers; i++)
			add_listener(rows, pid, i, EPOLL(i));
	for (i = 1; i <= nr_workers; i++)
		add_epoll(rows, master + i, EPOLL(i));
}

Test(inventory, the_worker_owns_the_epoll_instance_and_is_never_the_master)
{
	struct inventory inventory;
	const struct group *group;
	struct rows rows = {};
	size_t i;

	add_nginx(&rows, 10, 4);
	group = build_one(&rows, &inventory);
	cr_expect_eq(group->reason, REASON_NONE);
	cr_assert_eq(group->nr_listeners, 4);
	for (i = 0; i < 4; i++) {
		cr_expect_eq(group->listeners[i].pid, 11 + i);
		cr_expect_eq(group->listeners[i].event_loop, EPOLL(1 + i));
		cr_expect_eq(group->listeners[i].nr_holders, 5);
		cr_expect_eq(group->listeners[i].cookie, 101 + i);
	}
	cr_expect_str_eq(group->listeners[0].comm, "worker-11");
	cr_expect_eq(group_nr_workers(group), 4);
	cr_expect_eq(group_nr_processes(group), 5);
	inventory_done(&inventory);
}

Test(inventory, the_order_of_the_rows_does_not_matter)
{
	struct rows rows = {}, reversed = {};
	struct inventory inventory;
	const struct group *group;
	size_t i;

	add_nginx(&rows, 10, 4);
	for (i = rows.nr; i > 0; i--)
		reversed.rows[reversed.nr++] = rows.rows[i - 1];
	group = build_one(&reversed, &inventory);
	cr_assert_eq(group->nr_listeners, 4);
	for (i = 0; i < 4; i++)
		cr_expect_eq(group->listeners[i].pid, 11 + i);
	inventory_done(&inventory);
}

/* A helper that a worker forked inherits the listener and the epoll instance, and uses neither. */
Test(inventory, the_worker_is_the_parent_of_a_child_that_inherited_its_listener)
{
	struct inventory inventory;
	const struct group *group;
	struct rows rows = {};

	add_listener(&rows, 30, 1, EPOLL(1));
	add_listener(&rows, 20, 1, EPOLL(1));
	add_listener(&rows, 21, 2, EPOLL(2));
	add_epoll(&rows, 30, EPOLL(1));
	add_epoll(&rows, 20, EPOLL(1));
	add_epoll(&rows, 21, EPOLL(2));
	set_group_size(&rows, 2);
	group = build_one(&rows, &inventory);
	cr_assert_eq(group->nr_listeners, 2);
	cr_expect_eq(group->listeners[0].pid, 20);
	cr_expect_eq(group->listeners[0].nr_holders, 2);
	cr_expect_eq(group->reason, REASON_NONE);
	inventory_done(&inventory);
}

/* A server that changed its process id by a fork before it began to serve. */
Test(inventory, the_process_that_waits_is_the_worker_although_another_is_older)
{
	struct inventory inventory;
	const struct group *group;
	struct rows rows = {};

	add_listener(&rows, 20, 1, EPOLL(1))->waiter_pid = 30;
	add_listener(&rows, 30, 1, EPOLL(1))->waiter_pid = 30;
	add_epoll(&rows, 20, EPOLL(1));
	add_epoll(&rows, 30, EPOLL(1));
	group = build_one(&rows, &inventory);
	cr_expect_eq(group->listeners[0].pid, 30);
	inventory_done(&inventory);
}

Test(inventory, a_thread_that_blocks_in_accept_tells_its_process)
{
	struct inventory inventory;
	const struct group *group;
	struct inspect_row *row;
	struct rows rows = {};
	uint32_t pid;

	for (pid = 20; pid < 23; pid++) {
		row = add_listener(&rows, pid, 1, 0);
		row->waiter = WAITER_THREAD;
		row->waiter_pid = 22;
	}
	group = build_one(&rows, &inventory);
	cr_expect_eq(group->listeners[0].pid, 22);
	cr_expect_eq(group->listeners[0].event_loop, 0);
	inventory_done(&inventory);
}

Test(inventory, threads_of_one_process_are_as_many_workers)
{
	struct inventory inventory;
	const struct group *group;
	struct rows rows = {};
	uint32_t i;

	for (i = 1; i <= 4; i++) {
		add_listener(&rows, 20, i, EPOLL(i));
		add_epoll(&rows, 20, EPOLL(i));
	}
	group = build_one(&rows, &inventory);
	cr_expect_eq(group_nr_workers(group), 4);
	cr_expect_eq(group_nr_processes(group), 1);
	cr_expect_eq(group->reason, REASON_NONE);
	inventory_done(&inventory);
}

Test(inventory, listeners_of_one_event_loop_are_one_worker)
{
	struct inventory inventory;
	const struct group *group;
	struct rows rows = {};
	uint32_t i;

	for (i = 1; i <= 4; i++)
		add_listener(&rows, 20, i, EPOLL(1));
	add_epoll(&rows, 20, EPOLL(1));
	group = build_one(&rows, &inventory);
	cr_expect_eq(group_nr_workers(group), 1);
	inventory_done(&inventory);
}

Test(inventory, a_group_with_one_mptcp_listener_cannot_be_steered)
{
	struct inventory inventory;
	const struct group *group;
	struct inspect_row *row;
	struct rows rows = {};
	char text[128];

	add_listener(&rows, 20, 1, EPOLL(1));
	add_listener(&rows, 21, 2, EPOLL(2));
	row = add_listener(&rows, 22, 3, EPOLL(3));
	row->protocol = IPPROTO_MPTCP;
	row->group = 0;
	row->group_size = 0;
	group = build_one(&rows, &inventory);
	cr_expect_eq(group->reason, REASON_MPTCP);
	cr_expect_eq(group->nr_listeners, 3);
	group_reason_text(group, text, sizeof(text));
	cr_expect(strstr(text, "MPTCP"), "%s", text);
	inventory_done(&inventory);
}

/* An MPTCP listener comes first in the scan; the TCP ones beside it are still one group with it. */
Test(inventory, an_mptcp_listener_does_not_split_its_group)
{
	struct inventory inventory;
	const struct group *group;
	struct inspect_row *row;
	struct rows rows = {};

	row = add_listener(&rows, 20, 1, EPOLL(1));
	row->protocol = IPPROTO_MPTCP;
	row->group = 0;
	add_listener(&rows, 21, 2, EPOLL(2));
	add_listener(&rows, 22, 3, EPOLL(3));
	group = build_one(&rows, &inventory);
	cr_expect_eq(group->nr_listeners, 3);
	cr_expect_eq(group->reason, REASON_MPTCP);
	inventory_done(&inventory);
}

Test(inventory, equal_addresses_in_two_networks_are_two_groups)
{
	struct inventory inventory;
	struct inspect_row *row;
	struct rows rows = {};
	uint32_t i;

	for (i = 1; i <= 4; i++) {
		row = add_listener(&rows, 20 + i, i, EPOLL(i));
		row->group_size = 2;
		if (i > 2)
			continue;
		row->group = GROUP(2);
		row->netns = 9;
	}
	build(&rows, &inventory);
	cr_assert_eq(inventory.nr_groups, 2);
	cr_expect_eq(inventory.groups[0].netns, 7);
	cr_expect_eq(inventory.groups[1].netns, 9);
	for (i = 0; i < 2; i++) {
		cr_expect_eq(inventory.groups[i].nr_listeners, 2);
		cr_expect_eq(inventory.groups[i].reason, REASON_NONE);
	}
	inventory_done(&inventory);
}

Test(inventory, a_group_with_members_that_no_process_shows_cannot_be_steered)
{
	struct inventory inventory;
	const struct group *group;
	struct rows rows = {};
	char text[128];

	add_listener(&rows, 20, 1, EPOLL(1));
	add_listener(&rows, 21, 2, EPOLL(2));
	set_group_size(&rows, 3);
	group = build_one(&rows, &inventory);
	cr_expect_eq(group->reason, REASON_HIDDEN);
	group_reason_text(group, text, sizeof(text));
	cr_expect(strstr(text, "2 of 3 listeners"), "%s", text);
	inventory_done(&inventory);
}

Test(inventory, one_listener_of_many_processes_is_nothing_to_steer)
{
	struct inventory inventory;
	const struct group *group;
	struct rows rows = {};
	char text[128];
	uint32_t pid;

	for (pid = 20; pid < 24; pid++)
		add_listener(&rows, pid, 1, EPOLL(1));
	set_group_size(&rows, 1);
	group = build_one(&rows, &inventory);
	cr_expect_eq(group->reason, REASON_ONE_LISTENER);
	group_reason_text(group, text, sizeof(text));
	cr_expect_str_eq(text, "one listener, 4 processes: nothing to steer");
	inventory_done(&inventory);
}

Test(inventory, listeners_without_reuseport_are_not_joined)
{
	struct inventory inventory;
	struct inspect_row *row;
	struct rows rows = {};
	uint32_t i;

	for (i = 1; i <= 2; i++) {
		row = add_listener(&rows, 20 + i, i, EPOLL(i));
		row->reuseport = 0;
		row->group = 0;
		row->group_size = 0;
		row->port = 80 + i;
	}
	build(&rows, &inventory);
	cr_assert_eq(inventory.nr_groups, 2);
	for (i = 0; i < 2; i++) {
		cr_expect_eq(inventory.groups[i].port, 81 + i);
		cr_expect_eq(inventory.groups[i].reason, REASON_NO_REUSEPORT);
	}
	inventory_done(&inventory);
}

Test(inventory, a_hostile_name_is_kept_as_it_is)
{
	struct inventory inventory;
	const struct group *group;
	struct rows rows = {};
	char hostile[COMM_SIZE];

	/* Sixteen bytes without an end, an escape sequence among them. */
	memset(hostile, 'x', sizeof(hostile));
	memcpy(hostile, "\x1b[2J\n\"", 6);
	memcpy(add_listener(&rows, 20, 1, 0)->comm, hostile, sizeof(hostile));
	group = build_one(&rows, &inventory);
	cr_expect(!memcmp(group->listeners[0].comm, hostile, sizeof(hostile)));
	inventory_done(&inventory);
}

/* Groups come in an order that people and scripts can rely on. */
Test(inventory, groups_are_sorted_by_network_port_family_and_address)
{
	static const struct {
		uint32_t netns, port, family;
		const char *address;
	} expected[] = {
		{ 3, 443, AF_INET, "10.0.0.1" },   { 7, 80, AF_INET, "10.0.0.1" },
		{ 7, 80, AF_INET, "10.0.0.2" },	   { 7, 80, AF_INET6, "::1" },
		{ 7, 8080, AF_INET, "127.0.0.1" },
	};
	struct inventory inventory;
	struct rows rows = {};
	uint8_t address[16];
	size_t i;

	for (i = COUNT(expected); i > 0; i--) {
		struct inspect_row *row = add_listener(&rows, 20, (uint32_t)i, 0);

		row->netns = expected[i - 1].netns;
		row->port = expected[i - 1].port;
		row->family = expected[i - 1].family;
		row->group = GROUP(i);
		inet_pton((int)row->family, expected[i - 1].address, row->address);
	}
	build(&rows, &inventory);
	cr_assert_eq(inventory.nr_groups, COUNT(expected));
	for (i = 0; i < COUNT(expected); i++) {
		const struct group *group = &inventory.groups[i];

		memset(address, 0, sizeof(address));
		inet_pton((int)expected[i].family, expected[i].address, address);
		cr_expect_eq(group->netns, expected[i].netns, "group %zu", i);
		cr_expect_eq(group->port, expected[i].port, "group %zu", i);
		cr_expect_eq(group->family, expected[i].family, "group %zu", i);
		cr_expect(!memcmp(group->address, address, sizeof(address)), "group %zu", i);
	}
	inventory_done(&inventory);
}
