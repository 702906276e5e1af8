/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/inventory.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* The rows of one scan, listeners and epoll instances apart, each sorted for the join. */
struct join {
	const struct inspect_row **listeners; /* by socket, then by age of the holder */
	const struct inspect_row **epolls; /* by instance, then by age of the holder */
	size_t nr_listeners, nr_epolls;
};

static int compare_age(const struct inspect_row *a, const struct inspect_row *b)
{
	int order = COMPARE(a->start_ns, b->start_ns);

	return order ? order : COMPARE(a->pid, b->pid);
}

static int compare_by_socket(const void *left, const void *right)
{
	const struct inspect_row *a = *(const struct inspect_row *const *)left;
	const struct inspect_row *b = *(const struct inspect_row *const *)right;
	int order = COMPARE(a->socket, b->socket);

	return order ? order : compare_age(a, b);
}

static int compare_by_epoll(const void *left, const void *right)
{
	const struct inspect_row *a = *(const struct inspect_row *const *)left;
	const struct inspect_row *b = *(const struct inspect_row *const *)right;
	int order = COMPARE(a->epoll, b->epoll);

	return order ? order : compare_age(a, b);
}

static void join_done(struct join *join)
{
	free(join->listeners);
	free(join->epolls);
}

/* Whatever it returns, join_done() gives it back. */
static int join_init(const struct inspect_row *rows, size_t nr_rows, struct join *join)
{
	size_t i;

	memset(join, 0, sizeof(*join));
	join->listeners = calloc(nr_rows + 1, sizeof(*join->listeners));
	join->epolls = calloc(nr_rows + 1, sizeof(*join->epolls));
	if (!join->listeners || !join->epolls)
		return -ENOMEM;
	for (i = 0; i < nr_rows; i++)
		if (rows[i].kind == ROW_LISTENER)
			join->listeners[join->nr_listeners++] = &rows[i];
		else
			join->epolls[join->nr_epolls++] = &rows[i];
	qsort(join->listeners, join->nr_listeners, sizeof(*join->listeners), compare_by_socket);
	qsort(join->epolls, join->nr_epolls, sizeof(*join->epolls), compare_by_epoll);
	return 0;
}

/* The process that waits at this moment, if it is one of the rows. */
static const struct inspect_row *find_waiter(const struct inspect_row *const *rows, size_t nr_rows,
					     uint32_t waiter_pid)
{
	size_t i;

	for (i = 0; waiter_pid && i < nr_rows; i++)
		if (rows[i]->pid == waiter_pid)
			return rows[i];
	return NULL;
}

/*
 * Who owns the epoll instance: the one who waits on it, else its oldest holder, since a forked
 * helper inherits an instance and seldom uses it.
 */
static const struct inspect_row *find_epoll_owner(const struct join *join,
						  const struct inspect_row *listener)
{
	const struct inspect_row *const *first = NULL, *owner;
	size_t i, count = 0;

	for (i = 0; i < join->nr_epolls; i++) {
		if (join->epolls[i]->epoll != listener->epoll)
			continue;
		if (!first)
			first = &join->epolls[i];
		count++;
	}
	if (!first)
		return NULL;
	owner = find_waiter(first, count, listener->waiter_pid);
	return owner ? owner : *first;
}

/* rows: all rows of one socket, oldest holder first. Who serves the listener? */
static const struct inspect_row *find_worker(const struct join *join,
					     const struct inspect_row *const *rows, size_t nr_rows)
{
	const struct inspect_row *worker = NULL;

	if (rows[0]->epoll)
		worker = find_epoll_owner(join, rows[0]);
	if (!worker && rows[0]->waiter == WAITER_THREAD)
		worker = find_waiter(rows, nr_rows, rows[0]->waiter_pid);
	return worker ? worker : rows[0];
}

static int listener_init(const struct join *join, const struct inspect_row *const *rows,
			 size_t nr_rows, struct listener *listener)
{
	const struct inspect_row *row = rows[0], *worker = find_worker(join, rows, nr_rows);
	size_t i;

	*listener = (struct listener){
		.cookie = row->cookie,
		.socket = row->socket,
		.event_loop = row->epoll,
		.pid = worker->pid,
		.state = row->state,
		.half_open = row->half_open,
		.queued = row->queued,
		.backlog = row->backlog,
		.protocol = row->protocol,
		.reuseport = row->reuseport,
		.nr_holders = nr_rows,
	};
	memcpy(listener->comm, worker->comm, sizeof(listener->comm));
	listener->holders = calloc(nr_rows, sizeof(*listener->holders));
	if (!listener->holders)
		return -ENOMEM;
	for (i = 0; i < nr_rows; i++)
		listener->holders[i] = (struct holder){ .pid = rows[i]->pid,
							.fd = rows[i]->fd,
							.start_ns = rows[i]->start_ns };
	return 0;
}

static bool row_is_same_address(const struct inspect_row *row, const struct group *group)
{
	return row->port == group->port && row->family == group->family &&
	       row->netns == group->netns && row->ifindex == group->ifindex &&
	       !memcmp(row->address, group->address, sizeof(group->address));
}

/*
 * Members of a reuseport group share its identity. An MPTCP listener hides its TCP socket, so it is
 * put with whatever else listens on its address.
 */
static bool row_belongs(const struct inspect_row *row, const struct group *group)
{
	if (row->group && group->id)
		return row->group == group->id;
	if (!row->reuseport || !row_is_same_address(row, group))
		return false;
	return row->protocol == IPPROTO_MPTCP || group->listeners[0].protocol == IPPROTO_MPTCP;
}

static void group_init(const struct inspect_row *row, struct group *group)
{
	*group = (struct group){
		.family = row->family,
		.port = row->port,
		.netns = row->netns,
		.ifindex = row->ifindex,
		.uid = row->uid,
		.v6only = row->v6only,
	};
	memcpy(group->address, row->address, sizeof(group->address));
}

/* What the kernel knows of the group comes from any TCP member. */
static void group_learn(const struct inspect_row *row, struct group *group)
{
	if (!row->group)
		return;
	group->id = row->group;
	group->size = row->group_size;
	group->prog_id = row->prog_id;
	group->prog_type = row->prog_type;
	memcpy(group->prog_name, row->prog_name, sizeof(group->prog_name));
}

static struct group *inventory_find(struct inventory *inventory, const struct inspect_row *row)
{
	struct group *groups;
	size_t i;

	for (i = 0; i < inventory->nr_groups; i++)
		if (row_belongs(row, &inventory->groups[i]))
			return &inventory->groups[i];
	groups = reallocarray(inventory->groups, inventory->nr_groups + 1, sizeof(*groups));
	if (!groups)
		return NULL;
	inventory->groups = groups;
	group_init(row, &groups[inventory->nr_groups]);
	return &groups[inventory->nr_groups++];
}

static int inventory_add(struct inventory *inventory, const struct join *join,
			 const struct inspect_row *const *rows, size_t nr_rows)
{
	struct group *group = inventory_find(inventory, rows[0]);
	struct listener *listeners;
	int err;

	if (!group)
		return -ENOMEM;
	listeners = reallocarray(group->listeners, group->nr_listeners + 1, sizeof(*listeners));
	if (!listeners)
		return -ENOMEM;
	group->listeners = listeners;
	err = listener_init(join, rows, nr_rows, &listeners[group->nr_listeners]);
	if (err)
		return err;
	group->nr_listeners++;
	group_learn(rows[0], group);
	return 0;
}

static enum reason group_find_reason(const struct group *group)
{
	size_t i;

	for (i = 0; i < group->nr_listeners; i++)
		if (group->listeners[i].protocol == IPPROTO_MPTCP)
			return REASON_MPTCP;
	if (!group->id)
		return REASON_NO_REUSEPORT;
	if (group->size > group->nr_listeners)
		return REASON_HIDDEN;
	return group->nr_listeners == 1 ? REASON_ONE_LISTENER : REASON_NONE;
}

static int compare_cookies(const void *left, const void *right)
{
	const struct listener *a = left, *b = right;

	return COMPARE(a->cookie, b->cookie);
}

static int compare_groups(const void *left, const void *right)
{
	const struct group *a = left, *b = right;
	int order = COMPARE(a->netns, b->netns);

	if (!order)
		order = COMPARE(a->port, b->port);
	if (!order)
		order = COMPARE(a->family, b->family);
	if (!order)
		order = memcmp(a->address, b->address, sizeof(a->address));
	return order ? order : COMPARE(a->ifindex, b->ifindex);
}

static void inventory_finish(struct inventory *inventory)
{
	size_t i;

	for (i = 0; i < inventory->nr_groups; i++) {
		struct group *group = &inventory->groups[i];

		qsort(group->listeners, group->nr_listeners, sizeof(*group->listeners),
		      compare_cookies);
		group->reason = group_find_reason(group);
	}
	if (inventory->nr_groups)
		qsort(inventory->groups, inventory->nr_groups, sizeof(*inventory->groups),
		      compare_groups);
}

int inventory_build(const struct inspect_row *rows, size_t nr_rows, struct inventory *ret_inventory)
{
	struct inventory inventory = {};
	size_t first, next;
	struct join join;
	int err;

	err = join_init(rows, nr_rows, &join);
	for (first = 0; !err && first < join.nr_listeners; first = next) {
		next = first + 1;
		while (next < join.nr_listeners &&
		       join.listeners[next]->socket == join.listeners[first]->socket)
			next++;
		err = inventory_add(&inventory, &join, &join.listeners[first], next - first);
	}
	if (err) {
		inventory_done(&inventory);
	} else {
		inventory_finish(&inventory);
		*ret_inventory = inventory;
	}
	join_done(&join);
	return err;
}

void inventory_done(struct inventory *inventory)
{
	size_t i, j;

	for (i = 0; i < inventory->nr_groups; i++) {
		for (j = 0; j < inventory->groups[i].nr_listeners; j++)
			free(inventory->groups[i].listeners[j].holders);
		free(inventory->groups[i].listeners);
	}
	free(inventory->groups);
	*inventory = (struct inventory){};
}

const struct listener *group_find_listener(const struct group *group, uint64_t cookie)
{
	size_t i;

	for (i = 0; i < group->nr_listeners; i++)
		if (group->listeners[i].cookie == cookie)
			return &group->listeners[i];
	return NULL;
}

const struct group *inventory_find_cookie(const struct inventory *inventory, uint64_t cookie)
{
	size_t i;

	for (i = 0; i < inventory->nr_groups; i++)
		if (group_find_listener(&inventory->groups[i], cookie))
			return &inventory->groups[i];
	return NULL;
}
