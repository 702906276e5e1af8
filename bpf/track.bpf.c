// SPDX-License-Identifier: GPL-2.0-only
/*
 * track: counts how many connections each worker holds, and reports listeners that come and go.
 *
 * Every TCP state change of the machine passes here. A socket without a conn_owner record is none
 * of ours and costs one lookup. There is no table of connections: the record is in the socket.
 *
 * The program is attached twice. A tracing program that interrupts itself on the same CPU is
 * skipped by the kernel (since 6.1, commit 05b24ff9b2cf), and a softirq that finishes a handshake
 * does interrupt an application's close(). Of two copies, one always runs: while the first is
 * interrupted the second is free, and by the time the second runs the first is free again. The
 * record's state makes sure that each event still counts once.
 */
#include <linux/bpf.h>
#include <stdbool.h>
#include "kernel_types.h"
#include "maps.h"
#include "owner.h"
#include "report.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

static __always_inline void count_connection(struct sock *sk, int oldstate, int newstate)
{
	struct conn_owner *owner;
	bool opens = newstate == TCP_ESTABLISHED;

	if (!opens && (!state_is_held(oldstate) || state_is_held(newstate)))
		return;
	owner = bpf_sk_storage_get(&conn_owner, sk, NULL, 0);
	if (!owner)
		return;
	if (opens)
		owner_open(owner);
	else
		owner_close(owner);
}

/* Nobody may be reading: a full ring only means that the next reader has to rescan. */
static __always_inline void report_listener(struct sock *sk, __u32 kind)
{
	struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event)
		return;
	event_fill(event, sk, kind);
	bpf_ringbuf_submit(event, 0);
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(track, struct sock *sk, int oldstate, int newstate)
{
	__u32 kind;

	if (sk->sk_protocol != IPPROTO_TCP)
		return 0;
	count_connection(sk, oldstate, newstate);
	if (event_of_change(sk, oldstate, newstate, &kind))
		report_listener(sk, kind);
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(track_again, struct sock *sk, int oldstate, int newstate)
{
	if (sk->sk_protocol == IPPROTO_TCP)
		count_connection(sk, oldstate, newstate);
	return 0;
}
