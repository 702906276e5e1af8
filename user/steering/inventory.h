/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What listens on this machine: listeners joined into groups, each with its worker.
 *
 * Pure: it is built from the rows of one kernel scan (kernel/scan.h) and does no I/O. The worker of
 * a listener is the process that owns the epoll instance watching it; without one, the process whose
 * thread waits on it; else the process that holds it, if that is a single one.
 */
#ifndef SOCKSTEER_STEERING_INVENTORY_H
#define SOCKSTEER_STEERING_INVENTORY_H

#include "socksteer/types.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One descriptor of a listener: a listener is copied through any one of them. */
struct holder {
	uint32_t pid;
	uint32_t fd;
	uint64_t start_ns; /* when the process started; tells a reused pid */
};

struct listener {
	uint64_t cookie;
	uint64_t socket; /* identity of the socket in the kernel */
	uint64_t event_loop; /* identity of its epoll instance, 0 without one */
	uint32_t pid; /* the worker, 0 if it is not known */
	char comm[COMM_SIZE]; /* the worker's name; not escaped */
	uint32_t state; /* enum worker_state */
	uint32_t half_open;
	uint32_t queued;
	uint32_t backlog;
	uint32_t protocol; /* IPPROTO_TCP or IPPROTO_MPTCP */
	bool reuseport;
	struct holder *holders; /* owned */
	size_t nr_holders;
};

/* Why a set of listeners cannot be steered, or REASON_NONE. */
enum reason {
	REASON_NONE,
	REASON_NO_REUSEPORT, /* the listener was opened without SO_REUSEPORT */
	REASON_MPTCP, /* one or more members are MPTCP sockets */
	REASON_ONE_LISTENER, /* a group of one */
	REASON_HIDDEN, /* the kernel's group has members that no process shows */
};

/* All listeners of one reuseport group; or the single listener where there is no SO_REUSEPORT. */
struct group {
	uint64_t id; /* identity of the kernel's group, 0 without SO_REUSEPORT */
	uint8_t address[16]; /* network order */
	uint32_t family; /* AF_INET or AF_INET6 */
	uint32_t port;
	uint32_t netns; /* inode number */
	uint32_t ifindex; /* bound device, 0 for any */
	uint32_t uid;
	bool v6only;
	uint32_t size; /* members as the kernel counts them */
	uint32_t prog_id; /* program attached, 0 for none or classic BPF */
	uint32_t prog_type; /* enum bpf_prog_type, 0 for none */
	char prog_name[COMM_SIZE]; /* not escaped */
	bool ours; /* the program attached is a pinned steer of ours; set by steering/groups */
	enum reason reason;
	struct listener *listeners; /* owned, sorted by cookie, which is the order of creation */
	size_t nr_listeners;
};

/* Sorted by network namespace, port, family, address. */
struct inventory {
	struct group *groups; /* owned */
	size_t nr_groups;
};

/* Joins the rows. -ENOMEM. */
int inventory_build(const struct inspect_row *rows, size_t nr_rows,
		    struct inventory *ret_inventory);
void inventory_done(struct inventory *inventory);

/* One clause that says why, such as "one listener, 4 processes: nothing to steer". "" for none. */
void group_reason_text(const struct group *group, char *ret_text, size_t size);

/* Number of different workers, and of different processes that hold the listeners. */
size_t group_nr_workers(const struct group *group);
size_t group_nr_processes(const struct group *group);

/* The listener with this cookie, NULL if the group has none. Borrowed. */
const struct listener *group_find_listener(const struct group *group, uint64_t cookie);

/* The group that has it, NULL if none does. Borrowed. */
const struct group *inventory_find_cookie(const struct inventory *inventory, uint64_t cookie);

/* Which group the user means: every field that is set must match. */
struct group_spec {
	bool has_address;
	uint8_t address[16];
	uint32_t family;
	uint32_t port;
	uint32_t netns; /* 0 for any */
	uint32_t pid; /* a process that holds a listener of the group, 0 for any */
	const char *text; /* as the user wrote it, for messages; borrowed */
};

/* "ADDR:PORT", "[V6]:PORT", ":PORT" or "PORT". -EINVAL. */
int group_spec_parse(const char *text, struct group_spec *ret_spec);
bool group_spec_matches(const struct group_spec *spec, const struct group *group);
/* True if both say the same, however it was written. */
bool group_spec_is_same(const struct group_spec *a, const struct group_spec *b);

#endif
