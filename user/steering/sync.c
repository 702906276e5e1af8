/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/sync.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "kernel/remote.h"
#include "kernel/values.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* The kernel's ENOTSUPP, which it lets slip out to user space; MPTCP and unix sockets give it. */
#define KERNEL_ENOTSUPP 524

/* One group while its slots are being changed. */
struct sync {
	const struct group *group;
	const struct group_maps *maps;
	struct roster *roster;
	struct failure *failure;
	struct member members[MAX_SLOTS];
	struct settings settings;
};

static uint32_t find_slot(const struct sync *sync, uint64_t cookie)
{
	uint32_t slot;

	for (slot = 0; slot < MAX_SLOTS; slot++)
		if (sync->members[slot].cookie == cookie)
			return slot;
	return MAX_SLOTS;
}

static int put_failed(const struct sync *sync, const struct listener *listener, int err)
{
	char comm[4 * COMM_SIZE + 1];
	const char *why = strerror(-err);

	text_escape(listener->comm, COMM_SIZE, comm, sizeof(comm));
	if (err == -EBUSY)
		why = "it is in another program's map already; detach that one first";
	else if (err == -KERNEL_ENOTSUPP)
		why = "it is an MPTCP listener";
	else if (err == -EINVAL)
		why = "it does not listen with SO_REUSEPORT set before bind";
	return failure_set(sync->failure, EXIT_FAILED, -err,
			   "cannot steer the listener of %s (process %u): %s", comm, listener->pid,
			   why);
}

static int take_failed(const struct sync *sync, const struct listener *listener, int err)
{
	char comm[4 * COMM_SIZE + 1];

	text_escape(listener->comm, COMM_SIZE, comm, sizeof(comm));
	if (err == -ESRCH || err == -ESTALE)
		return failure_set(sync->failure, EXIT_FAILED, ESTALE,
				   "the listener of %s (process %u) vanished meanwhile, again and "
				   "again: try once more when the server is calm",
				   comm, listener->pid);
	return failure_set(
		sync->failure, EXIT_MISSING, -err,
		"cannot copy the listener of %s (process %u): %s; without it "
		"that listener would get no connections: run as root with CAP_SYS_PTRACE, "
		"without a seccomp or LSM rule against pidfd_getfd",
		comm, listener->pid, strerror(-err));
}

/* A copy of the listener from any process that still holds it. */
static int take_any(const struct listener *listener, int *ret_fd)
{
	int err = -ESTALE, first = 0;
	size_t i;

	for (i = 0; i < listener->nr_holders; i++) {
		err = remote_listener_take(listener->holders[i].pid, listener->holders[i].fd,
					   listener->cookie, ret_fd);
		if (!err)
			return 0;
		if (!first || first == -ESTALE || first == -ESRCH)
			first = err;
	}
	return first ? first : err;
}

/* Charges the listener's connections and, if put, gives it its slot. The copy lives only here. */
static int place_listener(const struct sync *sync, const struct listener *listener, uint32_t slot,
			  bool put)
{
	const struct member *member = &sync->members[slot];
	struct conn_owner owner = roster_owner(sync->roster, member->worker, member->listener);
	int fd CLEANUP(cleanup_fd) = -1;
	int err = take_any(listener, &fd);

	if (err)
		return take_failed(sync, listener, err);
	err = owner_write(sync->roster->tables->conn_owner, fd, &owner);
	if (!err && put)
		err = slot_put(sync->maps->listeners, slot, fd);
	return err ? put_failed(sync, listener, err) : 0;
}

static int write_member(struct sync *sync, uint32_t slot, const struct member *member)
{
	int err = value_write(sync->maps->members, slot, member);

	if (!err)
		sync->members[slot] = *member;
	return err;
}

static int table_failed(const struct sync *sync, int err)
{
	return failure_set(sync->failure, EXIT_FAILED, -err,
			   err == -ENOSPC ? "the tables are full: at most %u slots a group, %u "
					    "listeners and %u workers in all" :
					    "cannot write the maps (limits: %u slots a group, %u "
					    "listeners, %u workers in all)",
			   MAX_SLOTS, MAX_LISTENERS, MAX_WORKERS);
}

static int take_worker(const struct sync *sync, const struct listener *listener, uint32_t *ret_row)
{
	bool exclusive = sync->group->nr_listeners > 1 && group_nr_workers(sync->group) == 1;

	return roster_take_worker(sync->roster, listener, exclusive, ret_row);
}

/*
 * The slots that steer looks at, and the slow start of who joins a group that is steered already.
 * Read again before it is written: somebody may have changed another setting meanwhile.
 */
static int note_joined(struct sync *sync, uint32_t slot, uint64_t joined_ns)
{
	int err = value_read(sync->maps->settings, 0, &sync->settings);

	if (!err && sync->settings.attached_ns)
		err = value_write_part(sync->maps->alarms, 0, sizeof(struct alarm),
				       offsetof(struct alarm, last_ramp_ns), &joined_ns,
				       sizeof(joined_ns));
	if (err || slot < sync->settings.nr_slots)
		return err;
	sync->settings.nr_slots = slot + 1;
	return value_write(sync->maps->settings, 0, &sync->settings);
}

/* Rows first, the slot last: a listener that can be chosen is always accounted for. */
static int add_listener(struct sync *sync, const struct listener *listener)
{
	uint32_t slot = find_slot(sync, 0);
	uint64_t now_ns = clock_now_ns();
	struct member member = { .cookie = listener->cookie,
				 .joined_ns = now_ns,
				 .ramp_ns = now_ns };
	int err;

	if (slot == MAX_SLOTS)
		return table_failed(sync, -ENOSPC);
	err = take_worker(sync, listener, &member.worker);
	if (!err)
		err = roster_take_listener(sync->roster, listener, member.worker, &member.listener);
	if (!err)
		err = write_member(sync, slot, &member);
	if (err)
		return table_failed(sync, err);
	err = place_listener(sync, listener, slot, true);
	return err ? err : note_joined(sync, slot, member.joined_ns);
}

/* The listener is in its slot; its event loop may have moved to another process. */
static int check_listener(struct sync *sync, const struct listener *listener, uint32_t slot)
{
	struct member member = sync->members[slot];
	int err;

	if (worker_serves(&sync->roster->workers[member.worker], listener) ||
	    listener->state == STATE_UNATTENDED)
		return 0;
	err = take_worker(sync, listener, &member.worker);
	if (!err)
		err = roster_move_listener(sync->roster, member.listener, member.worker);
	/* No more than that: what looks have seen meanwhile stays. */
	if (!err)
		err = MEMBER_WRITE(sync->maps->members, slot, &member, worker, worker);
	if (!err)
		sync->members[slot].worker = member.worker;
	return err ? table_failed(sync, err) : place_listener(sync, listener, slot, false);
}

static int remove_member(struct sync *sync, uint32_t slot)
{
	const struct member empty = {};
	uint32_t row = sync->members[slot].listener;
	int err = slot_clear(sync->maps->listeners, slot);

	if (!err)
		err = write_member(sync, slot, &empty);
	if (!err && row < MAX_LISTENERS)
		err = roster_free_listener(sync->roster, row);
	return err;
}

static bool is_gone(const struct sync *sync, uint32_t slot)
{
	uint64_t cookie = sync->members[slot].cookie, found;

	/* A rescue that was killed left it shut, and its row is all that tells so. */
	if (!cookie || sync->members[slot].rescue_pid)
		return false;
	return !group_find_listener(sync->group, cookie) ||
	       slot_read(sync->maps->listeners, slot, &found) || found != cookie;
}

static int remove_gone(struct sync *sync, struct sync_report *report)
{
	uint32_t slot;
	int err;

	for (slot = 0; slot < MAX_SLOTS; slot++) {
		if (!is_gone(sync, slot))
			continue;
		err = remove_member(sync, slot);
		if (err)
			return table_failed(sync, err);
		report->nr_removed++;
	}
	return 0;
}

static int sync_read(struct sync *sync)
{
	int err = value_read(sync->maps->settings, 0, &sync->settings);

	return err ? err :
		     values_read(sync->maps->members, sync->members, sizeof(*sync->members),
				 MAX_SLOTS);
}

static int add_missing(struct sync *sync, struct sync_report *report)
{
	size_t i;
	int err = 0;

	for (i = 0; i < sync->group->nr_listeners && !err; i++) {
		const struct listener *listener = &sync->group->listeners[i];
		uint32_t slot = find_slot(sync, listener->cookie);

		if (slot < MAX_SLOTS) {
			err = check_listener(sync, listener, slot);
			continue;
		}
		err = add_listener(sync, listener);
		report->nr_added += !err;
	}
	return err;
}

int group_sync(const struct group *group, const struct group_maps *maps, struct roster *roster,
	       struct sync_report *ret_report, struct failure *failure)
{
	struct sync *sync CLEANUP(cleanup_free) = calloc(1, sizeof(*sync));
	struct sync_report report = {};
	int err;

	if (!sync)
		return failure_set(failure, EXIT_FAILED, ENOMEM, "out of memory");
	sync->group = group;
	sync->maps = maps;
	sync->roster = roster;
	sync->failure = failure;
	err = sync_read(sync);
	if (err)
		return table_failed(sync, err);
	err = remove_gone(sync, &report);
	if (!err)
		err = add_missing(sync, &report);
	/* Also after a listener changed hands. */
	if (!err)
		err = roster_free_unused_workers(roster);
	if (!err)
		*ret_report = report;
	return err;
}

int group_clear(const struct group_maps *maps, struct roster *roster)
{
	struct sync *sync CLEANUP(cleanup_free) = calloc(1, sizeof(*sync));
	int first = 0, err;
	uint32_t slot;

	if (!sync)
		return -ENOMEM;
	sync->maps = maps;
	sync->roster = roster;
	err = sync_read(sync);
	if (err)
		return err;
	for (slot = 0; slot < MAX_SLOTS; slot++) {
		if (!sync->members[slot].cookie)
			continue;
		err = remove_member(sync, slot);
		first = first ? first : err;
	}
	err = roster_free_unused_workers(roster);
	return first ? first : err;
}
