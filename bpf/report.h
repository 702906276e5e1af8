/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Listeners that come and go, as a tracepoint on TCP state changes sees them. Used by track, which
 * tells the daemon, and by witness, which tells a person.
 */
#ifndef SOCKSTEER_REPORT_H
#define SOCKSTEER_REPORT_H

#include "kernel_types.h"
#include "socksteer/types.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

/*
 * True if the change is a listener's with SO_REUSEPORT that joins or leaves; *ret_kind says which. A
 * connection is born as a copy of its listener and moves from LISTEN to SYN_RECV
 * (inet_csk_clone_lock), so only what is closed from LISTEN on is a listener that leaves.
 */
static __always_inline bool event_of_change(struct sock *sk, int oldstate, int newstate,
					    __u32 *ret_kind)
{
	if (newstate == TCP_LISTEN)
		*ret_kind = EVENT_LISTENER_JOINED;
	else if (oldstate == TCP_LISTEN && newstate == TCP_CLOSE)
		*ret_kind = EVENT_LISTENER_LEFT;
	else
		return false;
	return BPF_CORE_READ_BITFIELD(&sk->__sk_common, skc_reuseport);
}

static __always_inline void event_fill(struct event *event, struct sock *sk, __u32 kind)
{
	event->kind = kind;
	event->netns = sk->__sk_common.skc_net.net->ns.inum;
	event->family = sk->__sk_common.skc_family;
	event->port = sk->__sk_common.skc_num;
	event->cookie = bpf_get_socket_cookie(sk);
	event->time_ns = bpf_ktime_get_ns();
}

#endif
