/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The live state of one listening socket, read without its lock. Reads race with the socket's
 * owner: a value may be a moment old, which can cost one imperfect choice and nothing more.
 */
#ifndef SOCKSTEER_LISTENER_H
#define SOCKSTEER_LISTENER_H

#include "kread.h"
#include "socksteer/types.h"
#include <stdbool.h>

/*
 * Functions of the kernel that stand in wait queue entries and tell who waits. A name that is
 * hidden (kptr_restrict, no CAP_SYSLOG) or missing reads as zero.
 */
extern const void ep_poll_callback __ksym __weak;
extern const void io_poll_wake __ksym __weak;

struct listener_wait {
	__u64 epoll; /* address of the epoll instance, 0 without one */
	__u64 entry; /* address of the wait queue entry, 0 without one */
	__u32 waiter; /* enum waiter_kind */
	__u32 state; /* enum worker_state */
};

struct listener_queue {
	__u32 half_open;
	__u32 queued;
	__u32 backlog;
};

static __always_inline void listener_read_queue(__u64 sk, struct listener_queue *queue)
{
	queue->half_open = 0;
	queue->queued = 0;
	queue->backlog = ~0u;
	if (bpf_core_field_exists(struct inet_connection_sock, icsk_accept_queue.qlen.counter))
		queue->half_open =
			kread(struct inet_connection_sock, sk, icsk_accept_queue.qlen.counter);
	if (bpf_core_field_exists(struct sock, sk_max_ack_backlog)) {
		queue->queued = kread(struct sock, sk, sk_ack_backlog);
		queue->backlog = kread(struct sock, sk, sk_max_ack_backlog);
	}
}

/*
 * The identity of the connection that is accepted next, 0 for none. The kernel uses its memory again for
 * the next handshake, so the address alone does not tell one from the other; the sequence number with
 * which each began, a random one, does.
 */
static __always_inline __u64 listener_queue_head(__u64 sk)
{
	__u64 request;

	if (!bpf_core_field_exists(struct inet_connection_sock, icsk_accept_queue.rskq_accept_head))
		return 0;
	request = kread_pointer(
		kaddress(struct inet_connection_sock, sk, icsk_accept_queue.rskq_accept_head));
	if (!request)
		return 0;
	return request ^ (__u64)kread(struct tcp_request_sock, request, snt_isn) << 32;
}

static __always_inline int queue_is_empty(__u64 head)
{
	return kread_pointer(head) == head;
}

/*
 * A thread in epoll_wait stands in the instance's own wait queue. When an outer epoll instance
 * watches this one nobody ever stands there, and what the worker does is not known.
 */
static __always_inline __u32 epoll_state(__u64 epoll)
{
	if (!queue_is_empty(kaddress(struct eventpoll, epoll, wq.head)))
		return STATE_IDLE;
	if (!queue_is_empty(kaddress(struct eventpoll, epoll, poll_wait.head)))
		return STATE_UNKNOWN;
	return STATE_BUSY;
}

/* An epoll instance points back at its file, and its file at it; nothing else does. */
static __always_inline bool is_epoll(__u64 epoll)
{
	__u64 file;

	if (!epoll)
		return false;
	file = (__u64)kread(struct eventpoll, epoll, file);
	return file && (__u64)kread(struct file, file, private_data) == epoll;
}

/* The epoll instance that a wait queue entry belongs to, or 0 if it is another kind of waiter's. */
static __always_inline __u64 entry_epoll(__u64 entry, __u64 function)
{
	__u64 item, epoll;

	if (&ep_poll_callback && function != (__u64)&ep_poll_callback)
		return 0;
	item = (__u64)kread(struct eppoll_entry, kcontainer(struct eppoll_entry, entry, wait),
			    base);
	/* As a number, which callers may compare and cut; a pointer's type would forbid it. */
	epoll = kread_pointer(kaddress(struct epitem, item, ep));
	return &ep_poll_callback || is_epoll(epoll) ? epoll : 0;
}

/* Looks at the first waiter only: a listener of a reuseport group normally has one. */
static __always_inline void listener_read_wait(__u64 sk, struct listener_wait *wait)
{
	__u64 head, next, entry, function;

	wait->epoll = 0;
	wait->entry = 0;
	wait->waiter = WAITER_NONE;
	wait->state = STATE_UNKNOWN;
	if (!bpf_core_field_exists(struct eppoll_entry, wait) ||
	    !bpf_core_field_exists(struct eventpoll, wq))
		return;
	head = kaddress(struct socket_wq, kread(struct sock, sk, sk_wq), wait.head);
	next = kread_pointer(head);
	if (!next)
		return;
	if (next == head) {
		wait->state = STATE_UNATTENDED;
		return;
	}
	entry = kcontainer(struct wait_queue_entry, next, entry);
	wait->entry = entry;
	function = (__u64)kread(struct wait_queue_entry, entry, func);
	if (function == (__u64)&io_poll_wake) {
		wait->waiter = WAITER_IO_URING;
		return;
	}
	wait->epoll = entry_epoll(entry, function);
	if (!wait->epoll) {
		wait->waiter = WAITER_THREAD;
		wait->state = STATE_IDLE;
		return;
	}
	wait->waiter = WAITER_EPOLL;
	wait->state = epoll_state(wait->epoll);
}

#endif
