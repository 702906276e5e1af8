/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/rescue.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "kernel/pins.h"
#include "kernel/relisten.h"
#include "kernel/remote.h"
#include "kernel/values.h"
#include "steering/pending.h"
#include "steering/place.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

/* One rescue, from the checks to the slot. */
struct rescue {
	const struct pinned_group *pinned;
	const struct group *live;
	const struct tables *tables;
	struct failure *failure;
	struct member members[MAX_SLOTS];
	char name[ADDRESS_TEXT_SIZE];
	uint32_t slot;
	const struct listener *listener; /* in live */
	const struct holder *holder; /* of the descriptor that was copied */
};

static int maps_failed(const struct rescue *rescue, int err)
{
	return failure_set(rescue->failure, EXIT_FAILED, -err,
			   "cannot use the maps below " PINS_PATH " of %s: %s",
			   rescue->pinned->folder, strerror(-err));
}

static int read_members(struct rescue *rescue)
{
	int err = values_read(rescue->pinned->maps.members, rescue->members,
			      sizeof(*rescue->members), MAX_SLOTS);

	return err ? maps_failed(rescue, err) : 0;
}

static bool slot_is_filled(const struct rescue *rescue, uint32_t slot)
{
	uint64_t cookie;

	return rescue->members[slot].cookie &&
	       !slot_read(rescue->pinned->maps.listeners, slot, &cookie) &&
	       cookie == rescue->members[slot].cookie;
}

/* Only our program says where the connections go. Asked of the kernel, since a scan may be old. */
static int check_program(const struct rescue *rescue)
{
	const struct group_maps *maps = &rescue->pinned->maps;
	uint32_t id;

	if (rescue->pinned->whole && rescue->live && rescue->live->ours &&
	    (group_maps_sample(maps, &id) || id == maps->program_id))
		return 0;
	return failure_set(rescue->failure, EXIT_NOTHING, ENOENT,
			   "%s is not steered at the moment, so nothing is moved: \"socksteer "
			   "attach\" steers it again",
			   rescue->name);
}

static int check_slot(struct rescue *rescue)
{
	if (rescue->slot < MAX_SLOTS && slot_is_filled(rescue, rescue->slot))
		rescue->listener =
			group_find_listener(rescue->live, rescue->members[rescue->slot].cookie);
	if (rescue->listener)
		return 0;
	return failure_set(rescue->failure, EXIT_NOTHING, ESTALE,
			   "slot %u of %s has no listener any more: \"socksteer status\" shows "
			   "those there are",
			   rescue->slot, rescue->name);
}

/* Another worker that is expected to accept what it is given. */
static bool is_healthy(const struct rescue *rescue, uint32_t slot)
{
	const struct member *member = &rescue->members[slot];
	const struct listener *listener;
	struct worker worker;

	if (!slot_is_filled(rescue, slot) || member->stuck_ns ||
	    member->worker == rescue->members[rescue->slot].worker)
		return false;
	listener = group_find_listener(rescue->live, member->cookie);
	return listener && listener->state != STATE_UNATTENDED &&
	       !value_read(rescue->tables->workers, member->worker, &worker) &&
	       !(worker.flags & WORKER_DRAINING);
}

static int check_others(const struct rescue *rescue)
{
	uint32_t slot;

	for (slot = 0; slot < MAX_SLOTS; slot++)
		if (is_healthy(rescue, slot))
			return 0;
	return failure_set(rescue->failure, EXIT_NOTHING, ENOENT,
			   "%s has no other worker that could take the connections: each is stuck, "
			   "unattended or draining; they stay where they are",
			   rescue->name);
}

static int take_copy(struct rescue *rescue, int *ret_fd)
{
	const struct listener *listener = rescue->listener;
	int err = -ESTALE;
	size_t i;

	for (i = 0; i < listener->nr_holders && err; i++) {
		rescue->holder = &listener->holders[i];
		err = remote_listener_take(rescue->holder->pid, rescue->holder->fd,
					   listener->cookie, ret_fd);
	}
	if (!err)
		return 0;
	if (err == -ESRCH || err == -ESTALE)
		return failure_set(rescue->failure, EXIT_NOTHING, ESTALE,
				   "the listener in slot %u of %s was closed meanwhile, and what "
				   "it had moved to others",
				   rescue->slot, rescue->name);
	return failure_set(rescue->failure, EXIT_MISSING, -err,
			   "cannot copy the listener in slot %u of %s from process %u: %s; run as "
			   "root with CAP_SYS_PTRACE, without a seccomp or LSM rule against "
			   "pidfd_getfd",
			   rescue->slot, rescue->name, rescue->holder->pid, strerror(-err));
}

static bool is_at_group(const struct settings *settings, const struct sockaddr_storage *address)
{
	const struct sockaddr_in6 *ipv6 = (const struct sockaddr_in6 *)address;
	const struct sockaddr_in *ipv4 = (const struct sockaddr_in *)address;

	if (address->ss_family != settings->family)
		return false;
	if (settings->family == AF_INET)
		return ntohs(ipv4->sin_port) == settings->port &&
		       !memcmp(&ipv4->sin_addr, settings->address, sizeof(ipv4->sin_addr));
	return ntohs(ipv6->sin6_port) == settings->port &&
	       !memcmp(&ipv6->sin6_addr, settings->address, sizeof(ipv6->sin6_addr));
}

/* A listener that its owner shut and bound elsewhere has the cookie that it had. */
static int prepare(const struct rescue *rescue, int fd, struct relisten *ret_relisten)
{
	int err = relisten_prepare(fd, ret_relisten);

	if (!err && !is_at_group(&rescue->pinned->settings, &ret_relisten->address))
		err = -ESTALE;
	if (!err)
		return 0;
	return failure_set(rescue->failure, EXIT_FAILED, -err,
			   "the listener in slot %u of %s %s, and was left alone: a daemon, or "
			   "\"socksteer attach\", brings its slot up to date",
			   rescue->slot, rescue->name,
			   err == -ENOTCONN ? "does not listen any more" :
					      "belongs to another group by now");
}

static int relisten_failed(const struct rescue *rescue, int fd, int err)
{
	if (listener_listens(fd))
		return failure_set(rescue->failure, EXIT_FAILED, -err,
				   "cannot move the queue of slot %u of %s: %s; its listener "
				   "listens as before: try again",
				   rescue->slot, rescue->name, strerror(-err));
	return failure_set(rescue->failure, EXIT_FAILED, -err,
			   "the queue of slot %u of %s was moved, but its listener cannot listen "
			   "again: %s; \"socksteer attach\" tries it again, and so does the daemon",
			   rescue->slot, rescue->name, strerror(-err));
}

static int put_back_failed(const struct rescue *rescue, int err)
{
	return failure_set(
		rescue->failure, EXIT_FAILED, -err,
		"the queue of slot %u of %s was moved and its listener listens again, "
		"but it cannot have its slot: %s; \"socksteer attach\" gives it another, "
		"and so does the daemon",
		rescue->slot, rescue->name, strerror(-err));
}

static void count_rescue(const struct rescue *rescue, uint64_t now_ns)
{
	struct member member = rescue->members[rescue->slot];

	rescue_note(&member, now_ns);
	MEMBER_WRITE(rescue->pinned->maps.members, rescue->slot, &member, rescue_window_ns,
		     rescues_in_window);
}

/* The listener is shut for some of this, so nothing that can wait is done here but what it needs. */
static int move_queue(const struct rescue *rescue, int fd, const struct relisten *relisten)
{
	const struct member *member = &rescue->members[rescue->slot];
	const struct group_maps *maps = &rescue->pinned->maps;
	int err = pending_begin(maps, rescue->tables, rescue->slot, member->worker, rescue->holder,
				relisten->backlog);
	int put_err;

	if (err) {
		pending_end(maps, rescue->tables, rescue->slot, member->worker);
		return maps_failed(rescue, err);
	}
	err = relisten_run(fd, relisten);
	if (err && !listener_listens(fd))
		return relisten_failed(rescue, fd, err);
	put_err = pending_put_back(maps, rescue->tables, rescue->slot, member, fd);
	pending_end(maps, rescue->tables, rescue->slot, member->worker);
	if (err)
		return relisten_failed(rescue, fd, err);
	return put_err ? put_back_failed(rescue, put_err) : 0;
}

static int rescue_one(struct rescue *rescue, struct rescue_report *report)
{
	int fd CLEANUP(cleanup_fd) = -1;
	struct relisten relisten;
	uint64_t begun_ns;
	int err = take_copy(rescue, &fd);

	if (!err)
		err = prepare(rescue, fd, &relisten);
	if (err)
		return err;
	report->slot = rescue->slot;
	report->cookie = rescue->listener->cookie;
	report->was_stuck = rescue->members[rescue->slot].stuck_ns;
	listener_read_counts(fd, &report->queued_before, &report->backlog_before);
	report->backlog_after = report->backlog_before;
	/* Its worker accepts, so it is not to find its listener shut. */
	if (!report->queued_before)
		return 0;
	begun_ns = clock_now_ns();
	err = move_queue(rescue, fd, &relisten);
	if (err)
		return err;
	report->duration_ns = clock_now_ns() - begun_ns;
	count_rescue(rescue, begun_ns);
	listener_read_counts(fd, &report->queued_after, &report->backlog_after);
	return 0;
}

static void wake_holder_of(const struct listener *listener)
{
	uint32_t queued, backlog;
	size_t i;

	for (i = 0; i < listener->nr_holders; i++) {
		int fd CLEANUP(cleanup_fd) = -1;

		if (remote_listener_take(listener->holders[i].pid, listener->holders[i].fd,
					 listener->cookie, &fd))
			continue;
		listener_read_counts(fd, &queued, &backlog);
		if (queued)
			listener_wake(fd);
		return;
	}
}

/* For kernels that do not: see listener_wake(). Those that do leave nobody waiting who has a queue. */
static void wake_others(struct rescue *rescue)
{
	const struct listener *listener;
	uint32_t slot, result;

	if (group_maps_survey(&rescue->pinned->maps, &result) || read_members(rescue))
		return;
	for (slot = 0; slot < MAX_SLOTS; slot++) {
		const struct member *member = &rescue->members[slot];

		if (!member->cookie || !member->head || member->state != STATE_IDLE)
			continue;
		listener = group_find_listener(rescue->live, member->cookie);
		if (listener)
			wake_holder_of(listener);
	}
}

void group_wake(const struct group *live)
{
	size_t i;

	for (i = 0; i < live->nr_listeners; i++)
		if (live->listeners[i].queued && live->listeners[i].state == STATE_IDLE)
			wake_holder_of(&live->listeners[i]);
}

int group_rescue(const struct pinned_group *pinned, const struct group *live,
		 const struct tables *tables, uint32_t slot, struct rescue_report *ret_report,
		 struct failure *failure)
{
	struct rescue *rescue CLEANUP(cleanup_free) = calloc(1, sizeof(*rescue));
	struct rescue_report report = {};
	int err;

	if (!rescue)
		return failure_set(failure, EXIT_FAILED, ENOMEM, "out of memory");
	rescue->pinned = pinned;
	rescue->live = live;
	rescue->tables = tables;
	rescue->failure = failure;
	rescue->slot = slot;
	settings_name(&pinned->settings, rescue->name);
	err = check_program(rescue);
	if (!err)
		err = read_members(rescue);
	if (!err)
		err = check_slot(rescue);
	if (!err)
		err = check_others(rescue);
	if (!err)
		err = rescue_one(rescue, &report);
	if (err)
		return err;
	if (report.queued_before)
		wake_others(rescue);
	*ret_report = report;
	return 0;
}
