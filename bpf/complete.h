/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Is every listener of the group in a slot? One that joined and has none would starve as long as
 * something is always selected, so then nothing is.
 *
 * The slots are counted only when the group looks different from the last time, or was incomplete
 * then; otherwise it costs three reads of what the kernel has just used itself.
 */
#ifndef SOCKSTEER_COMPLETE_H
#define SOCKSTEER_COMPLETE_H

#include "group_maps.h"
#include "kread.h"
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

struct slot_count {
	__u64 array;
	__u32 nr_filled;
};

/* bpf_loop callback */
static long count_slot(__u32 slot, struct slot_count *count)
{
	__u64 at = kaddress(struct reuseport_array, count->array, ptrs) + slot * sizeof(__u64);

	count->nr_filled += kread_pointer(at) != 0;
	return 0;
}

/* Counts the filled slots. A global function, which the verifier looks at once. */
__noinline __u32 slots_filled(__u64 array, __u32 nr_slots)
{
	struct slot_count count = { .array = array };

	bpf_loop(nr_slots < MAX_SLOTS ? nr_slots : MAX_SLOTS, count_slot, &count, 0);
	return count.nr_filled;
}

/*
 * ctx_socket: address of a listener of the group. array: of the kernel's array behind listeners.
 * What cannot be read counts as complete.
 */
__noinline int group_is_complete(__u64 ctx_socket, __u64 array, __u32 nr_slots)
{
	const __u32 row = 0;
	struct membership *known = bpf_map_lookup_elem(&membership, &row);
	__u32 nr_listeners;
	__u64 group, last;

	if (!known || !bpf_core_field_exists(struct sock_reuseport, socks))
		return 1;
	group = (__u64)kread(struct sock, ctx_socket, sk_reuseport_cb);
	nr_listeners = kread(struct sock_reuseport, group, num_socks);
	if (!nr_listeners)
		return 1;
	last = kread_pointer(kaddress(struct sock_reuseport, group, socks) +
			     (nr_listeners - 1) * sizeof(__u64));
	if (known->complete && known->nr_listeners == nr_listeners && known->last == last)
		return 1;
	known->nr_listeners = nr_listeners;
	known->last = last;
	known->complete = slots_filled(array, nr_slots) >= nr_listeners;
	return known->complete;
}

/* A pointer becomes a number by being stored in a map and read back. */
static __always_inline __u64 context_socket(struct sk_reuseport_md *ctx)
{
	const __u32 row = 0;
	struct membership *known = bpf_map_lookup_elem(&membership, &row);

	if (!known)
		return 0;
	known->socket = (__u64)ctx->sk;
	return *(volatile __u64 *)&known->socket;
}

#endif
