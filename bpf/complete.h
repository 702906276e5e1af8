/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Is every listener of the group in a slot? One that joined and has none starves as long as something
 * is always selected, so after a short patience nothing is. The patience covers the time in which a
 * daemon puts it there, or is started again; until then the others go on being steered.
 *
 * The slots are counted only when the group looks different from the last time, or was incomplete
 * then; otherwise it costs three reads of what the kernel has just used itself.
 */
#ifndef SOCKSTEER_COMPLETE_H
#define SOCKSTEER_COMPLETE_H

#include "arrays.h"
#include "group_maps.h"
#include "kread.h"
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

/*
 * How long a listener may be without a slot before the hash takes over: longer than a daemon takes to
 * start, and nothing to a worker that has just opened its listener.
 */
#define PATIENCE_NS 500000000

/* bpf_loop callback */
static long count_slot(__u32 slot, __u32 *nr_filled)
{
	*nr_filled += slot_socket(slot) != 0;
	return 0;
}

/* Counts the filled slots. A global function, which the verifier looks at once. */
__noinline __u32 slots_filled(__u32 nr_slots)
{
	__u32 nr_filled = 0;

	bpf_loop(nr_slots < MAX_SLOTS ? nr_slots : MAX_SLOTS, count_slot, &nr_filled, 0);
	return nr_filled;
}

/* The patience begins anew with each change. Where most have no slot, waiting would crowd the rest. */
static __always_inline bool is_patient(struct scratch *scratch, __u32 nr_missing, bool has_changed)
{
	__u64 now = bpf_ktime_get_ns();

	if (has_changed)
		scratch->incomplete_since_ns = now;
	return nr_missing <= scratch->nr_listeners / 2 &&
	       now - scratch->incomplete_since_ns < PATIENCE_NS;
}

/*
 * Looks closer at a group that is not as it was, and tells whether it may be steered. A global function,
 * to keep it off the usual path.
 */
__noinline int group_recount(__u32 nr_slots, __u32 nr_listeners, __u64 last)
{
	const __u32 row = 0;
	struct scratch *scratch = bpf_map_lookup_elem(&scratches, &row);
	__u32 nr_filled = slots_filled(nr_slots);
	bool has_changed;

	if (!scratch)
		return 1;
	has_changed = scratch->complete || scratch->nr_listeners != nr_listeners ||
		      scratch->last != last;
	scratch->nr_listeners = nr_listeners;
	scratch->last = last;
	scratch->complete = nr_filled >= nr_listeners;
	return scratch->complete || is_patient(scratch, nr_listeners - nr_filled, has_changed);
}

/* A pointer becomes a number by being stored in a map and read back. */
static __always_inline __u64 context_socket(struct sk_reuseport_md *ctx, struct scratch *scratch)
{
	scratch->socket = (__u64)ctx->sk;
	return *(volatile __u64 *)&scratch->socket;
}

/* What cannot be read counts as complete. */
static __always_inline bool group_is_steerable(struct sk_reuseport_md *ctx, struct scratch *scratch,
					       __u32 nr_slots)
{
	__u32 nr_listeners;
	__u64 group, last;

	if (!bpf_core_field_exists(struct sock_reuseport, socks))
		return true;
	group = (__u64)kread(struct sock, context_socket(ctx, scratch), sk_reuseport_cb);
	nr_listeners = kread(struct sock_reuseport, group, num_socks);
	if (!nr_listeners)
		return true;
	last = kread_pointer(kaddress(struct sock_reuseport, group, socks) +
			     (nr_listeners - 1) * sizeof(__u64));
	if (scratch->complete && scratch->nr_listeners == nr_listeners && scratch->last == last)
		return true;
	return group_recount(nr_slots, nr_listeners, last);
}

#endif
