// SPDX-License-Identifier: GPL-2.0-only
/*
 * inspect and seed: one pass over the open files of every process in every network namespace.
 *
 * inspect writes a struct inspect_row for each listening TCP socket and each epoll instance; user
 * space joins them: the worker of a listener is the owner of the epoll instance that watches it,
 * not whoever holds a descriptor. seed charges connections that were open before the attach.
 */
#include <linux/bpf.h>
#include <stdbool.h>
#include "listener.h"
#include "owner.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

/* A row is larger than a program's stack should carry. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct inspect_row);
} row_buffer SEC(".maps");

static __always_inline void row_of_task(struct inspect_row *row, struct task_struct *task)
{
	row->pid = task->tgid;
	row->start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	BPF_CORE_READ_STR_INTO(&row->comm, task, group_leader, comm);
}

static __always_inline void row_of_address(struct inspect_row *row, struct sock *sk)
{
	row->family = sk->__sk_common.skc_family;
	row->port = sk->__sk_common.skc_num;
	row->netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	row->ifindex = sk->__sk_common.skc_bound_dev_if;
	if (row->family == AF_INET)
		__builtin_memcpy(row->address, &sk->__sk_common.skc_rcv_saddr, 4);
	else
		BPF_CORE_READ_INTO(&row->address, sk, __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr8);
}

/* The group and the program that somebody attached to it. */
static __always_inline void row_of_group(struct inspect_row *row, struct sock *sk)
{
	struct sock_reuseport *group = sk->sk_reuseport_cb;
	struct bpf_prog *prog;

	row->group = (__u64)group;
	if (!group)
		return;
	row->group_size = BPF_CORE_READ(group, num_socks);
	prog = BPF_CORE_READ(group, prog);
	if (!prog)
		return;
	/* Classic BPF has no type in the kernel; for us it is what it is used as. */
	row->prog_type = BPF_CORE_READ(prog, type) ?: BPF_PROG_TYPE_SOCKET_FILTER;
	row->prog_id = BPF_CORE_READ(prog, aux, id);
	BPF_CORE_READ_STR_INTO(&row->prog_name, prog, aux, name);
}

/* A thread in a blocking accept stands in the socket's queue, one in epoll_wait in the epoll's. */
static __always_inline __u32 waiting_process(const struct listener_wait *wait)
{
	__u64 entry = wait->entry;
	struct task_struct *task;

	if (wait->waiter == WAITER_EPOLL) {
		__u64 head = kaddress(struct eventpoll, wait->epoll, wq.head);
		__u64 next = kread_pointer(head);

		if (!next || next == head)
			return 0;
		entry = kcontainer(struct wait_queue_entry, next, entry);
	}
	if (!entry)
		return 0;
	/* For poll and select this is no task; the number read then names no holder and is ignored. */
	task = kread(struct wait_queue_entry, entry, private);
	return kread(struct task_struct, task, tgid);
}

static __always_inline void row_of_state(struct inspect_row *row, struct sock *sk)
{
	struct listener_queue queue;
	struct listener_wait wait;

	listener_read_queue((__u64)sk, &queue);
	listener_read_wait((__u64)sk, &wait);
	row->half_open = queue.half_open;
	row->queued = queue.queued;
	row->backlog = queue.backlog;
	row->state = wait.state;
	row->waiter = wait.waiter;
	row->epoll = wait.epoll;
	row->waiter_pid = waiting_process(&wait);
}

static __always_inline bool is_listener(struct sock *sk)
{
	__u32 family = sk->__sk_common.skc_family;
	__u32 protocol = sk->sk_protocol;

	return (family == AF_INET || family == AF_INET6) &&
	       (protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP) &&
	       sk->__sk_common.skc_state == TCP_LISTEN;
}

static __always_inline void row_of_listener(struct inspect_row *row, struct sock *sk)
{
	row->kind = ROW_LISTENER;
	row->socket = (__u64)sk;
	row->cookie = bpf_get_socket_cookie(sk);
	row->uid = sk->sk_uid.val;
	row->protocol = sk->sk_protocol;
	row->reuseport = BPF_CORE_READ_BITFIELD(&sk->__sk_common, skc_reuseport);
	row->v6only = BPF_CORE_READ_BITFIELD(&sk->__sk_common, skc_ipv6only);
	row_of_address(row, sk);
	row_of_group(row, sk);
	row_of_state(row, sk);
}

static __always_inline __u64 file_epoll(struct file *file)
{
	__u64 epoll = (__u64)file->private_data;

	if (!epoll || (__u64)kread(struct eventpoll, epoll, file) != (__u64)file)
		return 0;
	return epoll;
}

static __always_inline bool row_fill(struct inspect_row *row, struct file *file)
{
	struct socket *socket = bpf_sock_from_file(file);
	struct sock *sk;

	if (!socket) {
		row->kind = ROW_EPOLL;
		row->epoll = file_epoll(file);
		return row->epoll != 0;
	}
	sk = socket->sk;
	if (!sk || !is_listener(sk))
		return false;
	row_of_listener(row, sk);
	return true;
}

SEC("iter/task_file")
int inspect(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct inspect_row *row;
	const __u32 first = 0;

	if (!task || !file)
		return 0;
	row = bpf_map_lookup_elem(&row_buffer, &first);
	if (!row)
		return 0;
	__builtin_memset(row, 0, sizeof(*row));
	row->fd = ctx->fd;
	if (!row_fill(row, file))
		return 0;
	row_of_task(row, task);
	bpf_seq_write(ctx->meta->seq, row, sizeof(*row));
	return 0;
}

/* Set by user space between load and run. */
struct seed_filter seed_filter;

/* How many connections the pass charged. */
__u64 nr_seeded;

/* Epoll instance, or process id where there is none -> whom to charge. Filled by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * MAX_SLOTS);
	__type(key, __u64);
	__type(value, struct conn_owner);
} seed_owners SEC(".maps");

/* An IPv4 connection to an IPv6 listener carries its address mapped, in the IPv6 field. */
static __always_inline bool seed_matches(struct sock *sk)
{
	__u8 address[16] = {};
	int i;

	if (sk->__sk_common.skc_num != seed_filter.port ||
	    sk->__sk_common.skc_family != seed_filter.family ||
	    BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum) != seed_filter.netns)
		return false;
	if (seed_filter.any_address)
		return true;
	if (seed_filter.family == AF_INET)
		__builtin_memcpy(address, &sk->__sk_common.skc_rcv_saddr, 4);
	else
		BPF_CORE_READ_INTO(&address, sk, __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr8);
	for (i = 0; i < 16; i++)
		if (address[i] != seed_filter.address[i])
			return false;
	return true;
}

/* The worker that watches the connection, or else the process that holds it. */
static __always_inline struct conn_owner *seed_owner(struct sock *sk, struct task_struct *task)
{
	struct listener_wait wait;
	struct conn_owner *owner;
	__u64 key;

	listener_read_wait((__u64)sk, &wait);
	key = wait.epoll;
	owner = key ? bpf_map_lookup_elem(&seed_owners, &key) : NULL;
	if (owner)
		return owner;
	key = task->tgid;
	return bpf_map_lookup_elem(&seed_owners, &key);
}

/* Adds a connection that its record charges to worker, listener, or both already. */
static __always_inline void count_opened(struct load *load)
{
	if (load)
		__sync_fetch_and_add(&load->opened, 1);
}

/*
 * A record can be left from an earlier attach whose rows have other owners by now. Then the
 * connection is charged anew, to whatever of worker and listener it is not charged to any more. The
 * state is not touched: a close that comes meanwhile finds it.
 */
static __always_inline bool seed_renew(struct conn_owner *record, const struct conn_owner *owner)
{
	if (record->state != OWNER_OPEN || owner_listener_load(record))
		return false;
	record->listener = owner->listener;
	record->listener_generation = owner->listener_generation;
	count_opened(owner_listener_load(record));
	if (owner_worker_load(record))
		return true;
	record->worker = owner->worker;
	record->worker_generation = owner->worker_generation;
	count_opened(owner_worker_load(record));
	return true;
}

SEC("iter/task_file")
int seed(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct conn_owner *owner, *record;
	struct socket *socket;
	struct sock *sk;

	if (!task || !file)
		return 0;
	socket = bpf_sock_from_file(file);
	if (!socket)
		return 0;
	sk = socket->sk;
	if (!sk || sk->sk_protocol != IPPROTO_TCP || !state_is_held(sk->__sk_common.skc_state) ||
	    !seed_matches(sk))
		return 0;
	owner = seed_owner(sk, task);
	if (!owner)
		return 0;
	record = bpf_sk_storage_get(&conn_owner, sk, owner, BPF_SK_STORAGE_GET_F_CREATE);
	if (!record)
		return 0;
	if (record->state == OWNER_NEW)
		owner_open(record);
	else if (!seed_renew(record, owner))
		return 0;
	__sync_fetch_and_add(&nr_seeded, 1);
	/*
	 * It may have closed before the record was there to be found. What remains is the few
	 * nanoseconds between the tracepoint and the store of the new state; an audit mends those.
	 */
	if (!state_is_held(sk->__sk_common.skc_state))
		owner_close(record);
	return 0;
}
