/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel side and the user side share: the values of the pinned maps and the records that
 * the iterators write. A change of any of these layouts raises LAYOUT_VERSION; a binary that finds
 * pins of another version replaces them.
 *
 * Only fixed-width types and no implicit padding, so that both sides and bpftool agree.
 */
#ifndef SOCKSTEER_TYPES_H
#define SOCKSTEER_TYPES_H

#include <linux/types.h>

#define LAYOUT_VERSION 3

/* Slots of one group. A group may hold more listeners than the kernel's initial 128. */
#define MAX_SLOTS 1024

/* Rows of the worker and listener tables, over all groups. */
#define MAX_WORKERS 4096
#define MAX_LISTENERS 4096

#define COMM_SIZE 16

/* Room for the events that nobody has read yet. */
#define EVENTS_BYTES (64 * 1024)

#define DEFAULT_WEIGHT 1
#define MAX_WEIGHT 1000

enum outcome {
#define OUTCOME(NAME, name, text) OUTCOME_##NAME,
#include "socksteer/counters.def"
	NR_OUTCOMES,
};

/* What a worker is doing at the moment of reading. */
enum worker_state {
	STATE_UNKNOWN,
	STATE_IDLE, /* blocked waiting for events */
	STATE_BUSY, /* its event loop runs a handler */
	STATE_UNATTENDED, /* nobody waits for this listener */
	STATE_STUCK, /* views only: whatever it does, it does not accept what is queued */
	NR_STATES,
};

enum worker_flag {
	WORKER_DRAINING = 1 << 0,
	WORKER_RESCUED =
		1 << 1, /* it drains while one of its listeners is rescued, and only for that */
};

/* layout: the version of everything that is pinned. */
struct layout {
	__u32 version; /* LAYOUT_VERSION of the binary that pinned */
};

/* workers: worker -> who it is. Written by user space only. pid 0 means that the row is free. */
struct worker {
	__u32 pid; /* thread group id in the initial pid namespace */
	__u32 weight; /* share of load relative to the others, 1..MAX_WEIGHT */
	__u32 cost; /* policy_cost(weight), so that the kernel need not divide */
	__u32 flags; /* enum worker_flag */
	__u32 generation; /* raised when the row gets a new owner */
	__u32 reserved;
	__u64 event_loop; /* opaque identity of its epoll instance, 48 bits; 0 without one */
	char comm[COMM_SIZE];
};

/* listener_info: listener -> what the row stands for. Written by user space only. */
struct listener_info {
	__u64 cookie; /* SO_COOKIE of the socket, 0 means that the row is free */
	__u32 generation; /* raised when the row gets a new owner */
	__u32 worker; /* row of workers */
};

/* worker_load, listener_load: one value per CPU; monotonic, written by the kernel. */
struct load {
#define LOAD_COUNTER(name, text) __u64 name;
#include "socksteer/counters.def"
};

/* audits (one row): what audits have repaired so far. Written by user space only. */
struct audits {
#define AUDIT_COUNTER(name, text) __u64 name;
#include "socksteer/counters.def"
};

enum owner_state {
	OWNER_NEW, /* a listener, or a connection that is not established yet */
	OWNER_OPEN, /* counted as opened */
	OWNER_CLOSED, /* counted as closed */
	OWNER_MOVING, /* open, and at this moment being charged to somebody else */
};

/*
 * conn_owner: socket -> who is charged for it. User space writes it on listeners, the kernel copies
 * it to every accepted child (BPF_F_CLONE). The state makes each connection count exactly once
 * although two programs see every event.
 */
struct conn_owner {
	__u32 worker;
	__u32 worker_generation;
	__u32 listener;
	__u32 listener_generation;
	__u32 state; /* enum owner_state */
	__u32 pass; /* the audit that counted it last */
};

/* More often than this in a minute a listener is not rescued without being asked to. */
#define MAX_RESCUES_IN_WINDOW 6
#define RESCUE_WINDOW_NS 60000000000ull

/* In trials: a stuck listener that may be chosen, to see whether it accepts. */
#define MEMBER_ON_TRIAL (1u << 15)

/*
 * members (one map per group): slot -> who sits there, and what looks at its listener have seen. Written
 * by user space when a listener joins; from then on, each part by who is named. All times are
 * CLOCK_MONOTONIC, in nanoseconds, 0 for never or not now. The first 64 bytes, one cache line, are all
 * that a run needs of a listener with which all is well; of a stuck one it reads trials too.
 */
struct member {
	__u64 ramp_ns; /* user, kernel: when its slow start began, by joining or by recovering */
	__u32 worker; /* user: row of workers */
	__u32 listener; /* user: row of listener_info */
	__u64 head; /* kernel: identity of the first connection in its queue, 0 for none */
	__u64 head_since_ns; /* kernel: since when that one is the first */
	__u64 away_seen_ns; /* kernel: when its worker was found not waiting last, busy or unattended */
	__u64 away_ns; /* kernel: a duration, for how long it is certain to have been so */
	__u64 stuck_ns; /* kernel: when it was found stuck */
	__u32 look_tick; /* kernel: jiffies of the last look, the lower half */
	__u32 state; /* kernel: enum worker_state, as the last look found it */
	__u64 cookie; /* user: SO_COOKIE of the listener, 0 means an empty slot */
	__u64 joined_ns; /* user: when it got its slot */
	__u64 pace_ns; /* kernel: a duration, how long a head takes to move when the worker is well */
	__u64 away_since_ns; /* kernel: when the row of looks began that all found it away */
	__u64 rescue_window_ns; /* user: when the present minute of rescues began */
	__u32 nr_rescues; /* user: monotonic */
	__u16 rescues_in_window; /* user */
	__u16 trials; /* kernel: how often it was tried again since it is stuck, and MEMBER_ON_TRIAL */
	__u32 nr_stuck; /* kernel: monotonic */
	/*
	 * user: a rescue in progress. The descriptor of this process is the listener, which is to listen
	 * again with this backlog, whatever happens to the rescuer. pid 0: none.
	 */
	__u32 rescue_pid;
	__u32 rescue_fd;
	__u32 rescue_backlog;
};

enum policy {
	POLICY_LEAST_LOADED,
	POLICY_LEAST_CONN,
	POLICY_P2C,
	POLICY_ROUND_ROBIN,
	POLICY_HASH,
	NR_POLICIES,
};

/* settings (one map per group, one row): read on every run. Written by user space only. */
struct settings {
	__u32 policy; /* enum policy */
	__u32 nr_slots; /* slots 0..nr_slots-1 may hold listeners */
	__u32 busy_penalty; /* LOAD_UNIT = one connection, see policy.h */
	__u32 v6only; /* the listeners take no IPv4 */
	__u64 refresh_ns; /* how long a CPU relies on its snapshot before it starts a new pass */
	__u64 slow_start_ns; /* a listener that joins reaches its full share after this; 0 at once */
	__u64 stuck_after_ns; /* a queue whose head has not moved for this is stuck */
	/* Which group this is, for people and for a later attach. */
	__u8 address[16]; /* network order; IPv4 in the first four bytes */
	__u32 port;
	__u32 family; /* AF_INET or AF_INET6 */
	__u32 netns; /* inode number of the network namespace */
	__u32 ifindex; /* bound device, 0 for any */
	__u64 attached_ns; /* CLOCK_MONOTONIC, nanoseconds; 0 while the attach is unfinished */
	__u32 rescue; /* enum rescue_mode */
	__u32 reserved;
};

/* Which listeners the daemon rescues. */
enum rescue_mode {
	RESCUE_OFF,
	RESCUE_STUCK, /* that a worker watches, but does not accept from */
	RESCUE_STUCK_UNATTENDED, /* that nobody watches, too */
	NR_RESCUE_MODES,
};

/*
 * alarms (one map per group, one row): what the kernel and user space tell each other. A run of steer that
 * finds armed off turns it on and reports EVENT_ARRIVAL; who looks at the queues turns it off when nothing
 * waits any more.
 */
struct alarm {
	__u32 armed;
	__u32 reserved;
	__u64 last_ramp_ns; /* CLOCK_MONOTONIC, when the last slow start began; 0 if none did */
};

/*
 * rotation (one map per group, one row): round-robin as stride scheduling. The slot with the lowest
 * pass is next and moves on by a stride that is shorter the heavier its worker is. A slot that
 * joins, or comes back, starts at the clock, so that it gets no burst. Written by the kernel only.
 */
struct rotation {
	__u64 clock; /* pass of the slot that was selected last */
	__u64 pass[MAX_SLOTS];
};

/*
 * snapshot (one map per group, one row per CPU): large groups are ranked by what this CPU knew a
 * moment ago plus its own selections since. Written by the kernel only.
 */
struct snapshot {
	__u64 refreshed_ns; /* when the last pass over the slots began, CLOCK_MONOTONIC */
	__u32 cursor; /* the slot where the pass goes on, 0 between two passes */
	__u32 exhausted; /* no rank is zero since the last pass */
	__u32 rank[MAX_SLOTS]; /* policy_rank() */
};

/*
 * scratches (one map per group, one row per CPU, not pinned): what steer keeps for itself from run to
 * run. last, nr_listeners and complete are what the kernel's group looked like when its slots were
 * counted last; a listener that joins becomes the group's last, so a join is never missed.
 */
struct scratch {
	__u64 socket; /* the socket that the SYN came through; only of use during a run */
	__u64 last; /* identity of the group's last listener */
	__u32 nr_listeners;
	__u32 complete; /* every listener was in a slot */
	__u64 settled_ns; /* when the slow start of the last join ended, once that is past */
	__u64 incomplete_since_ns; /* CLOCK_MONOTONIC, while not complete */
	__u32 random; /* state of the random numbers */
	__u32 reserved;
};

enum event_kind {
	EVENT_LISTENER_JOINED,
	EVENT_LISTENER_LEFT,
	EVENT_ARRIVAL, /* the first connection since the queues were looked at; without a cookie */
	EVENT_STUCK,
	EVENT_RECOVERED,
};

/* events: ring buffer of things that user space has to act upon. */
struct event {
	__u32 kind; /* enum event_kind */
	__u32 netns;
	__u32 family;
	__u32 port;
	__u64 cookie;
	__u64 time_ns; /* CLOCK_MONOTONIC */
};

/* The same for people: all that is known at that moment, from a ring buffer that is never pinned. */
struct witness_record {
	struct event event;
	__u8 address[16];
	__u32 ifindex;
	__u32 pid; /* of the process that called listen() or close() */
	char comm[COMM_SIZE];
};

enum row_kind {
	ROW_LISTENER,
	ROW_EPOLL,
};

/* Who waits on a listener's wait queue. */
enum waiter_kind {
	WAITER_NONE,
	WAITER_EPOLL,
	WAITER_THREAD, /* a blocked accept, poll or select */
	WAITER_IO_URING,
};

/*
 * What the inspect iterator writes for each listening TCP socket that a process holds, and for each
 * epoll instance (then only kind, pid, fd, comm, start_ns and epoll are set).
 * Kernel addresses appear only as opaque identities.
 */
struct inspect_row {
	__u32 kind; /* enum row_kind */
	__u32 pid;
	__u32 fd;
	__u32 uid; /* of the socket, in the initial user namespace */
	__u64 start_ns; /* when the process started, CLOCK_BOOTTIME */
	__u64 epoll; /* the epoll instance: itself, or the one that watches the listener */
	char comm[COMM_SIZE];
	/* Listeners only, from here on. */
	__u64 socket; /* identity of the socket */
	__u64 cookie;
	__u64 group; /* identity of the reuseport group, 0 without SO_REUSEPORT */
	__u8 address[16];
	__u32 port;
	__u32 family;
	__u32 netns;
	__u32 ifindex;
	__u32 protocol; /* IPPROTO_TCP or IPPROTO_MPTCP */
	__u32 group_size; /* listeners in the kernel's group */
	__u32 prog_id; /* of the program attached to the group; 0 for none or for classic BPF */
	__u32 prog_type; /* enum bpf_prog_type, 0 for none */
	char prog_name[COMM_SIZE];
	__u32 half_open;
	__u32 queued;
	__u32 backlog;
	__u32 state; /* enum worker_state */
	__u32 waiter; /* enum waiter_kind */
	__u32 waiter_pid; /* the process whose thread waits at this moment, 0 for none */
	__u8 reuseport;
	__u8 v6only;
	__u8 reserved[6];
};

/* What survey returns: bits of what it found in the queues of a group. */
enum survey_result {
	SURVEY_WAITING = 1 << 0, /* connections, or handshakes that become some */
	SURVEY_STUCK = 1 << 1, /* a stuck listener, perhaps with an empty queue */
};

/* What sample returns instead of a program's id: classic BPF, which has none. */
#define SAMPLE_CLASSIC (~0u)

/* audit: the address of a steered group. A wildcard address is all zeros. */
struct audit_place {
	__u32 netns;
	__u32 family;
	__u32 port;
	__u32 reserved;
	__u8 address[16];
};

/* audit: who may hold connections of a group. */
struct audit_holder {
	__u64 id; /* identity of an epoll instance, or a process id */
	__u32 group; /* what audit_place was mapped to */
	__u32 reserved;
};

/* audit: what one pass found, apart from the counts by row. */
struct audit_totals {
	__u64 connections; /* established ones of steered groups, each once */
	__u64 misplaced; /* charged to another worker than the one that holds it, or to nobody */
	__u64 unrecorded; /* charged to nobody at all */
};

/* audit: adds to what a worker and a listener hold, by as many opened or closed connections. */
struct audit_adjustment {
	__s64 worker_held;
	__s64 listener_held;
	__u32 worker;
	__u32 worker_generation;
	__u32 listener;
	__u32 listener_generation;
};

#endif
