/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/pending.h"
#include "base/cleanup.h"
#include "kernel/pins.h"
#include "kernel/relisten.h"
#include "kernel/remote.h"
#include "steering/place.h"
#include "steering/rescue.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

/* One that drains anyway drains on afterwards. */
static int begin_draining(const struct tables *tables, uint32_t row)
{
	struct worker worker;
	int err = value_read(tables->workers, row, &worker);

	if (err || worker.flags & WORKER_DRAINING)
		return err;
	worker.flags |= WORKER_DRAINING | WORKER_RESCUED;
	return value_write(tables->workers, row, &worker);
}

static int end_draining(const struct tables *tables, uint32_t row)
{
	struct worker worker;
	int err = value_read(tables->workers, row, &worker);

	if (err || !(worker.flags & WORKER_RESCUED))
		return err;
	worker.flags &= ~(uint32_t)(WORKER_DRAINING | WORKER_RESCUED);
	return value_write(tables->workers, row, &worker);
}

/* The process last: a row without it says nothing. */
int pending_begin(const struct group_maps *maps, const struct tables *tables, uint32_t slot,
		  uint32_t worker, const struct holder *holder, uint32_t backlog)
{
	const struct member member = {
		.rescue_pid = holder->pid,
		.rescue_fd = holder->fd,
		.rescue_backlog = backlog,
	};
	int err = MEMBER_WRITE(maps->members, slot, &member, rescue_fd, rescue_backlog);

	if (!err)
		err = MEMBER_WRITE(maps->members, slot, &member, rescue_pid, rescue_pid);
	return err ? err : begin_draining(tables, worker);
}

int pending_end(const struct group_maps *maps, const struct tables *tables, uint32_t slot,
		uint32_t worker)
{
	const struct member none = {};
	int err = end_draining(tables, worker);

	return err ? err : MEMBER_WRITE(maps->members, slot, &none, rescue_pid, rescue_backlog);
}

/* Who is charged for the listener's connections, by the rows as they are now. */
static int read_owner(const struct tables *tables, const struct member *member,
		      struct conn_owner *ret_owner)
{
	struct listener_info info;
	struct worker worker;
	int err = value_read(tables->workers, member->worker, &worker);

	if (!err)
		err = value_read(tables->listener_info, member->listener, &info);
	if (err)
		return err;
	*ret_owner = (struct conn_owner){
		.worker = member->worker,
		.worker_generation = worker.generation,
		.listener = member->listener,
		.listener_generation = info.generation,
		.state = OWNER_NEW,
	};
	return 0;
}

int pending_put_back(const struct group_maps *maps, const struct tables *tables, uint32_t slot,
		     const struct member *member, int fd)
{
	const struct member unknown = {};
	struct conn_owner owner;
	uint64_t cookie;
	int err = MEMBER_WRITE(maps->members, slot, &unknown, head, head_since_ns);

	if (!err)
		err = read_owner(tables, member, &owner);
	if (!err)
		err = owner_write(tables->conn_owner, fd, &owner);
	if (err)
		return err;
	/* It was never shut, and a listener that is in a slot is refused as busy. */
	if (!slot_read(maps->listeners, slot, &cookie) && cookie == member->cookie)
		return 0;
	return slot_put(maps->listeners, slot, fd);
}

/* Where the group listens, for a listener of which nothing else is known any more. */
static void address_of_settings(const struct settings *settings, struct relisten *relisten)
{
	struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)&relisten->address;
	struct sockaddr_in *ipv4 = (struct sockaddr_in *)&relisten->address;

	relisten->address.ss_family = (sa_family_t)settings->family;
	if (settings->family == AF_INET) {
		memcpy(&ipv4->sin_addr, settings->address, sizeof(ipv4->sin_addr));
		ipv4->sin_port = htons((uint16_t)settings->port);
		relisten->address_bytes = sizeof(*ipv4);
		return;
	}
	memcpy(&ipv6->sin6_addr, settings->address, sizeof(ipv6->sin6_addr));
	ipv6->sin6_port = htons((uint16_t)settings->port);
	if (IN6_IS_ADDR_LINKLOCAL(&ipv6->sin6_addr))
		ipv6->sin6_scope_id = settings->ifindex;
	relisten->address_bytes = sizeof(*ipv6);
}

static int finish_failed(const struct settings *settings, const struct member *member, int err,
			 struct failure *failure)
{
	char name[ADDRESS_TEXT_SIZE];

	settings_name(settings, name);
	return failure_set(
		failure, EXIT_FAILED, -err,
		"%s: a listener of process %u was left shut by a rescue that was killed, and cannot "
		"be made to listen: %s; \"socksteer attach %s\" tries again, and so does the daemon, "
		"and a restart of that process ends it",
		name, member->rescue_pid, strerror(-err), name);
}

/* Without its slot it is a listener that the next look at the group takes for a new one: no harm. */
static int finish_one(const struct group_maps *maps, const struct tables *tables,
		      const struct settings *settings, uint32_t slot, const struct member *member,
		      struct failure *failure)
{
	struct relisten relisten = { .backlog = member->rescue_backlog };
	int fd CLEANUP(cleanup_fd) = -1;
	int err = remote_listener_take(member->rescue_pid, member->rescue_fd, member->cookie, &fd);

	/* Its process is gone, or has closed it. */
	if (err == -ESRCH || err == -ESTALE)
		return pending_end(maps, tables, slot, member->worker);
	address_of_settings(settings, &relisten);
	if (!err)
		err = relisten_finish(fd, &relisten);
	if (err)
		return finish_failed(settings, member, err, failure);
	pending_put_back(maps, tables, slot, member, fd);
	return pending_end(maps, tables, slot, member->worker);
}

static int maps_failed(int err, struct failure *failure)
{
	return failure_set(failure, EXIT_FAILED, -err,
			   "cannot use the maps below " PINS_PATH ": %s", strerror(-err));
}

int rescue_finish_pending(const struct group_maps *maps, const struct tables *tables,
			  struct failure *failure)
{
	struct member *members CLEANUP(cleanup_free) = calloc(MAX_SLOTS, sizeof(*members));
	struct settings settings;
	int first = 0, err;
	bool found = false;
	uint32_t slot;

	if (!members)
		return failure_set(failure, EXIT_FAILED, ENOMEM, "out of memory");
	err = values_read(maps->members, members, sizeof(*members), MAX_SLOTS);
	if (!err)
		err = value_read(maps->settings, 0, &settings);
	if (err)
		return maps_failed(err, failure);
	for (slot = 0; slot < MAX_SLOTS; slot++) {
		if (!members[slot].rescue_pid)
			continue;
		err = finish_one(maps, tables, &settings, slot, &members[slot], failure);
		first = first ? first : err;
		found = true;
	}
	if (first && failure->code == EXIT_DONE)
		return maps_failed(first, failure);
	return first || !found ? first : -ESTALE;
}

void rescue_forget_pending(const struct group_maps *maps, const struct tables *tables)
{
	struct member *members CLEANUP(cleanup_free) = calloc(MAX_SLOTS, sizeof(*members));
	uint32_t slot;

	if (!members || values_read(maps->members, members, sizeof(*members), MAX_SLOTS))
		return;
	for (slot = 0; slot < MAX_SLOTS; slot++)
		if (members[slot].rescue_pid)
			pending_end(maps, tables, slot, members[slot].worker);
}

bool rescue_finish_all(void)
{
	struct tables tables CLEANUP(tables_done) = TABLES_NONE;
	struct pinned pinned CLEANUP(pinned_done) = {};
	struct failure ignored = {};
	bool found = false;
	size_t i;

	/* Nothing is pinned, or it is of another layout and about to be replaced. */
	if (tables_open(&tables, &ignored) || pinned_open(&pinned, &ignored))
		return false;
	for (i = 0; i < pinned.nr_groups; i++)
		if (pinned.groups[i].maps.members >= 0 && pinned.groups[i].maps.settings >= 0 &&
		    rescue_finish_pending(&pinned.groups[i].maps, &tables, &ignored))
			found = true;
	return found;
}
