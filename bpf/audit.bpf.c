// SPDX-License-Identifier: GPL-2.0-only
/*
 * audit: compares the counters with the kernel's own sockets, and mends them.
 *
 * One pass over the open files of every process counts each established connection of the steered
 * groups once, by the rows that its record names. With repair, a connection without a record gets
 * one, and a connection that sits in another worker's event loop than the one it is charged to, as
 * after a migration, is moved there. adjust then mends what no socket explains.
 *
 * Connections that wait in a listener's queue are in no file table; their number is read from the
 * listener.
 */
#include <linux/bpf.h>
#include <stdbool.h>
#include "address.h"
#include "listener.h"
#include "owner.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

/* The low bits of an address by which workers names an event loop. */
#define EVENT_LOOP_MASK ((1ull << 48) - 1)

/* Set by user space before a pass. A pass has a number that no earlier one had; never zero. */
__u32 pass;
__u32 repair;

/* What the pass found. The queues are those of the last visit, and the longest of any. */
struct audit_totals totals;
__u32 listener_seen[MAX_LISTENERS];
__u32 listener_queued[MAX_LISTENERS];
__u32 listener_queued_most[MAX_LISTENERS];
__u32 worker_seen[MAX_WORKERS];

/* Address -> a number for the group. Filled by user space, as is holders. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_LISTENERS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct audit_place);
	__type(value, __u32);
} places SEC(".maps");

/* Whom to charge for connections of a group, by the event loop or process that holds them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * MAX_LISTENERS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct audit_holder);
	__type(value, struct conn_owner);
} holders SEC(".maps");

/* A queue that several processes show is read at each visit; the last one counts. */
static __always_inline void count_queue(struct sock *sk)
{
	struct conn_owner *record = bpf_sk_storage_get(&conn_owner, sk, NULL, 0);
	struct listener_queue queue;
	__u32 row;

	if (!record || record->listener >= MAX_LISTENERS)
		return;
	row = record->listener;
	listener_read_queue((__u64)sk, &queue);
	listener_queued[row] = queue.queued;
	if (queue.queued > listener_queued_most[row])
		listener_queued_most[row] = queue.queued;
}

/* An IPv4 connection to an IPv6 listener carries its address mapped, in the IPv6 field. */
static __always_inline __u32 *find_group(struct sock *sk)
{
	struct audit_place place = {
		.netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum),
		.family = sk->__sk_common.skc_family,
		.port = sk->__sk_common.skc_num,
	};
	__u32 *group;

	if (place.family != AF_INET && place.family != AF_INET6)
		return NULL;
	socket_address(sk, &place.address);
	group = bpf_map_lookup_elem(&places, &place);
	if (group)
		return group;
	__builtin_memset(place.address, 0, sizeof(place.address));
	return bpf_map_lookup_elem(&places, &place);
}

static __always_inline struct conn_owner *find_owner(__u32 group, __u64 id)
{
	struct audit_holder holder = { .id = id, .group = group };

	return id ? bpf_map_lookup_elem(&holders, &holder) : NULL;
}

/* True if nobody, or a worker with another event loop, is charged for the connection. */
static __always_inline bool is_misplaced(const struct conn_owner *record, __u64 epoll)
{
	__u32 row = record->worker;
	struct worker *worker = bpf_map_lookup_elem(&workers, &row);

	if (!owner_worker_load(record) || !owner_listener_load(record))
		return true;
	return epoll && worker && worker->event_loop != (epoll & EVENT_LOOP_MASK);
}

static __always_inline void load_add(struct load *load, __s64 held)
{
	if (load && held > 0)
		__sync_fetch_and_add(&load->opened, held);
	else if (load && held < 0)
		__sync_fetch_and_add(&load->closed, -held);
}

static __always_inline bool is_same_worker(const struct conn_owner *record,
					   const struct conn_owner *owner)
{
	return record->worker == owner->worker &&
	       record->worker_generation == owner->worker_generation;
}

static __always_inline bool is_same_listener(const struct conn_owner *record,
					     const struct conn_owner *owner)
{
	return record->listener == owner->listener &&
	       record->listener_generation == owner->listener_generation;
}

static __always_inline bool is_same_owner(const struct conn_owner *record,
					  const struct conn_owner *owner)
{
	return is_same_worker(record, owner) && is_same_listener(record, owner);
}

/*
 * Charges an open connection to somebody else. A close that comes meanwhile finds the state MOVING and
 * does not count; it is made up for at the end.
 */
static __always_inline void move_connection(struct sock *sk, struct conn_owner *record,
					    const struct conn_owner *owner)
{
	if (__sync_val_compare_and_swap(&record->state, OWNER_OPEN, OWNER_MOVING) != OWNER_OPEN)
		return;
	if (!is_same_worker(record, owner)) {
		load_add(owner_worker_load(record), -1);
		record->worker = owner->worker;
		record->worker_generation = owner->worker_generation;
		load_add(owner_worker_load(record), 1);
	}
	if (!is_same_listener(record, owner)) {
		load_add(owner_listener_load(record), -1);
		record->listener = owner->listener;
		record->listener_generation = owner->listener_generation;
		load_add(owner_listener_load(record), 1);
	}
	__sync_val_compare_and_swap(&record->state, OWNER_MOVING, OWNER_OPEN);
	if (!state_is_held(sk->__sk_common.skc_state))
		owner_close(record);
}

static __always_inline void count_record(const struct conn_owner *record)
{
	if (record->state != OWNER_OPEN)
		return;
	if (owner_listener_load(record) && record->listener < MAX_LISTENERS)
		listener_seen[record->listener]++;
	if (owner_worker_load(record) && record->worker < MAX_WORKERS)
		worker_seen[record->worker]++;
}

/* The record of a connection that had none. It may have closed before the record was there. */
static __always_inline struct conn_owner *record_make(struct sock *sk, struct conn_owner *owner)
{
	struct conn_owner *record;

	if (!owner)
		return NULL;
	totals.unrecorded++;
	if (!repair)
		return NULL;
	record = bpf_sk_storage_get(&conn_owner, sk, owner, BPF_SK_STORAGE_GET_F_CREATE);
	if (!record)
		return NULL;
	owner_open(record);
	if (!state_is_held(sk->__sk_common.skc_state))
		owner_close(record);
	return record;
}

/* Several processes can hold one connection; the pass counts it where it meets it first. */
static __always_inline void count_connection(struct sock *sk, struct task_struct *task, __u32 group)
{
	struct conn_owner *record, *watcher, *owner;
	struct listener_wait wait;

	record = bpf_sk_storage_get(&conn_owner, sk, NULL, 0);
	if (record && record->pass == pass)
		return;
	listener_read_wait((__u64)sk, &wait);
	watcher = find_owner(group, wait.epoll);
	owner = watcher ?: find_owner(group, task->tgid);
	if (!record)
		record = record_make(sk, owner);
	if (!record) {
		totals.connections += owner != NULL;
		return;
	}
	totals.connections++;
	record->pass = pass;
	if (record->state == OWNER_OPEN && owner && !is_same_owner(record, owner) &&
	    is_misplaced(record, watcher ? wait.epoll : 0)) {
		totals.misplaced++;
		if (repair)
			move_connection(sk, record, owner);
	}
	count_record(record);
}

SEC("iter/task_file")
int audit(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct socket *socket;
	struct sock *sk;
	__u32 *group;

	if (!task || !file)
		return 0;
	socket = bpf_sock_from_file(file);
	if (!socket)
		return 0;
	sk = socket->sk;
	if (!sk || sk->sk_protocol != IPPROTO_TCP)
		return 0;
	if (sk->__sk_common.skc_state == TCP_LISTEN) {
		count_queue(sk);
		return 0;
	}
	if (!state_is_held(sk->__sk_common.skc_state))
		return 0;
	group = find_group(sk);
	if (group)
		count_connection(sk, task, *group);
	return 0;
}

SEC("syscall")
int adjust(struct audit_adjustment *request)
{
	struct conn_owner owner = {
		.worker = request->worker,
		.worker_generation = request->worker_generation,
		.listener = request->listener,
		.listener_generation = request->listener_generation,
	};

	load_add(owner_worker_load(&owner), request->worker_held);
	load_add(owner_listener_load(&owner), request->listener_held);
	return 0;
}
