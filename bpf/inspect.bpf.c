// SPDX-License-Identifier: GPL-2.0-only
/*
 * inspect: one pass over the open files of every process in every network namespace.
 *
 * It writes a struct inspect_row for each listening TCP socket and each epoll instance; user space
 * joins them: the worker of a listener is the owner of the epoll instance that watches it, not
 * whoever holds a descriptor.
 */
#include <linux/bpf.h>
#include <stdbool.h>
#include "address.h"
#include "listener.h"
#include "socksteer/types.h"
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
	socket_address(sk, &row->address);
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
