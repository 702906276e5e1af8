// SPDX-License-Identifier: GPL-2.0-only
/*
 * witness: tells one "socksteer events" of listeners that come and go. Each run of the command loads
 * its own, with its own ring buffer, and nothing of it is pinned; the daemon's events are left alone.
 *
 * Listeners are opened and closed by processes, so the current task is the one that did it.
 */
#include <linux/bpf.h>
#include <stdbool.h>
#include "address.h"
#include "report.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

/* Seven hundred records: a restart of a large server while the reader prints. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} records SEC(".maps");

/* Records that found no room. Read by user space. */
__u64 nr_lost;

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(witness, struct sock *sk, int oldstate, int newstate)
{
	struct witness_record *record;
	__u32 kind;

	if (sk->sk_protocol != IPPROTO_TCP || !event_of_change(sk, oldstate, newstate, &kind))
		return 0;
	record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);
	if (!record) {
		__sync_fetch_and_add(&nr_lost, 1);
		return 0;
	}
	__builtin_memset(record, 0, sizeof(*record));
	event_fill(&record->event, sk, kind);
	socket_address(sk, &record->address);
	record->ifindex = sk->__sk_common.skc_bound_dev_if;
	record->pid = bpf_get_current_pid_tgid() >> 32;
	bpf_get_current_comm(record->comm, sizeof(record->comm));
	bpf_ringbuf_submit(record, 0);
	return 0;
}
