/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What policy.h wants to know of the listener in one slot, and what it says about it: the key, and for
 * the snapshot the rank.
 */
#ifndef SOCKSTEER_CANDIDATE_H
#define SOCKSTEER_CANDIDATE_H

#include "arrays.h"
#include "group_maps.h"
#include "hang.h"
#include "listener.h"
#include "maps.h"
#include "socksteer/policy.h"
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

/* How far the slot's next turn is ahead of the clock; who was away starts at the clock. */
static __always_inline __u64 rotation_ahead(const struct rotation *turns, __u32 slot)
{
	__u64 pass = turns->pass[slot & (MAX_SLOTS - 1)];

	return pass > turns->clock ? pass - turns->clock : 0;
}

static __always_inline __u64 slot_ahead(__u32 slot)
{
	const __u32 row = 0;
	struct rotation *turns = bpf_map_lookup_elem(&rotation, &row);

	return turns ? rotation_ahead(turns, slot) : 0;
}

/* Who was there at the attach needs no slow start: all began at once. */
static __always_inline __u32 member_cost(const struct settings *current,
					 const struct member *member, const struct worker *worker,
					 __u64 now)
{
	__u32 cost = worker->cost;

	if (!now || member->ramp_ns <= current->attached_ns || now < member->ramp_ns)
		return cost;
	return policy_ramp(cost, now - member->ramp_ns, current->slow_start_ns);
}

/*
 * False if the rows cannot be read. held is left out, it costs the most. now is zero unless a listener
 * of the group may be in its slow start.
 */
static __always_inline bool candidate_begin(const struct settings *current, __u32 slot,
					    const struct member *member, __u64 now,
					    struct policy_candidate *candidate)
{
	__u32 row = member->worker;
	struct worker *worker = bpf_map_lookup_elem(&workers, &row);

	if (!worker)
		return false;
	if (current->policy == POLICY_ROUND_ROBIN)
		candidate->ahead = slot_ahead(slot);
	candidate->cost = member_cost(current, member, worker, now);
	candidate->flags = worker->flags;
	return true;
}

static __always_inline void candidate_read_live(__u64 sk, __u32 slot, struct member *member,
						struct policy_candidate *candidate)
{
	struct listener_queue queue;
	struct listener_wait wait;

	listener_read_queue(sk, &queue);
	listener_read_wait(sk, &wait);
	candidate->half_open = queue.half_open;
	candidate->queued = queue.queued;
	candidate->backlog = queue.backlog;
	candidate->state = wait.state;
	member_glance(slot, sk, member, wait.state, queue.queued);
	candidate->away_ns = member->away_ns;
	candidate->is_stuck = member_is_stuck(member);
}

/* The rank stands for what the worker holds where even a short list has too many counters. */
#define EXACTLY RANK_NONE

/*
 * The key of the listener in a slot; KEY_NONE if the slot is empty; KEY_LOSES if the key cannot be
 * limit or below: the live state lies in cache lines that other CPUs write, so it is read only where
 * it matters. rank is EXACTLY, or what the snapshot has.
 */
__noinline __u64 slot_key(const struct settings *current, __u32 slot, __u64 now, __u64 limit,
			  __u32 rank)
{
	struct member *member = bpf_map_lookup_elem(&members, &slot);
	struct policy_candidate candidate = {};
	__u64 sk = slot_socket(slot);

	if (!current || !member || !sk || !candidate_begin(current, slot, member, now, &candidate))
		return KEY_NONE;
	if (rank == EXACTLY) {
		candidate.held = worker_held(member->worker);
	} else {
		candidate.held = policy_rank_load(rank) / (LOAD_UNIT * COST_ONE);
		candidate.cost = COST_ONE;
	}
	if (policy_key_floor(current, &candidate) > limit)
		return KEY_LOSES;
	candidate_read_live(sk, slot, member, &candidate);
	return policy_key(current, &candidate);
}

/*
 * The rank for the snapshot. The live state is read only where it was found bad before; what looks
 * good is checked when it makes the short list.
 */
__noinline __u32 slot_rank(const struct settings *current, __u32 slot, __u64 now, __u32 rank)
{
	struct member *member = bpf_map_lookup_elem(&members, &slot);
	struct policy_candidate candidate = {};
	__u64 sk = slot_socket(slot);

	if (!current || !member || !sk || !candidate_begin(current, slot, member, now, &candidate))
		return RANK_NONE;
	candidate.held = worker_held(member->worker);
	if (policy_rank_class(rank))
		candidate_read_live(sk, slot, member, &candidate);
	return policy_rank(policy_class(&candidate), policy_load(current, &candidate));
}

#endif
