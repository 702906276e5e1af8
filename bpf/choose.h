/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Choosing a slot. choose() is all that steer uses; the order of preference is policy.h's.
 *
 * Small groups are compared exactly on every run. In a large group the cost of summing counters
 * over all CPUs would grow with workers x CPUs, so each CPU ranks the slots by a snapshot of its
 * own, corrected by its own selections, and reads the live state of a short list only.
 */
#ifndef SOCKSTEER_CHOOSE_H
#define SOCKSTEER_CHOOSE_H

#include "group_maps.h"
#include "listener.h"
#include "maps.h"
#include "socksteer/policy.h"
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

/* Set by user space before loading: possible CPUs, which can be more than are online. */
const volatile __u32 nr_cpus = 1;

/*
 * Up to both limits every slot is compared exactly. The first bounds the live state that is read,
 * the second the counters that are summed, at some 5 ns each.
 */
#define EXACT_SLOTS 16
#define EXACT_SUMS 256

/* Counters that one run may sum to refresh its CPU's snapshot. */
#define REFRESH_SUMS 512

/* Lanes of the short list: the slots of a lane are every NR_LANES-th. A power of two. */
#define NR_LANES 8

/* How often a run looks for a better short list when all of one turned out to be ineligible. */
#define MAX_SHORT_LISTS 3

/* How many random slots p2c draws before it falls back to looking at all. */
#define MAX_DRAWS 16

/* One round-robin turn of a worker of weight 1. */
#define STRIDE (1u << 20)

#define NO_SLOT (~0u)

/* What one run knows. It lives on the stack and is handed from step to step. */
struct choice {
	struct settings *settings;
	struct rotation *rotation;
	struct snapshot *snapshot;
	__u64 array; /* address of the kernel's array behind listeners */
	__u32 nr_slots;
	__u32 seed; /* random */
	__u32 slot; /* the best so far, or NO_SLOT */
	__u32 nr_considered;
	__u32 first_block; /* where the scan of the snapshot starts */
	__u32 nr_blocks;
	struct policy_candidate best;
	__u32 lane_rank[NR_LANES];
	__u32 lane_slot[NR_LANES];
};

/* Connections that a worker holds, exactly. A global function, so that it is verified once. */
__noinline __u32 worker_held(__u32 row)
{
	__u64 held = 0;
	__u32 cpu;

	for (cpu = 0; cpu < nr_cpus; cpu++) {
		struct load *load = bpf_map_lookup_percpu_elem(&worker_load, &row, cpu);

		if (load)
			held += load->opened - load->closed;
	}
	/* Read while it moves, a sum can be a connection short of zero for a moment. */
	return (__s64)held < 0 ? 0 : (__u32)held;
}

static __always_inline __u64 slot_socket(__u64 array, __u32 slot)
{
	return kread_pointer(kaddress(struct reuseport_array, array, ptrs) + slot * sizeof(__u64));
}

/* When the slot's next round-robin turn is; who was away starts at the clock. */
static __always_inline __u64 rotation_pass(const struct rotation *rotation, __u32 slot)
{
	__u64 pass = rotation->pass[slot & (MAX_SLOTS - 1)];

	return pass > rotation->clock ? pass : rotation->clock;
}

/* Avoids the division for the usual weight. */
static __always_inline __u64 per_weight(__u64 value, __u32 weight)
{
	return weight > 1 ? value / weight : value;
}

static __always_inline __u32 *snapshot_rank(struct snapshot *snapshot, __u32 slot)
{
	return &snapshot->rank[slot & (MAX_SLOTS - 1)];
}

/* The live part of a candidate. False if the slot is empty. held is left to the caller. */
static __always_inline bool candidate_read(const struct choice *choice, __u32 slot,
					   const struct member *member,
					   struct policy_candidate *candidate)
{
	__u64 sk = slot_socket(choice->array, slot);
	struct listener_queue queue;
	struct listener_wait wait;
	struct worker *worker;
	__u32 row = member->worker;

	worker = bpf_map_lookup_elem(&workers, &row);
	if (!sk || !worker)
		return false;
	listener_read_queue(sk, &queue);
	listener_read_wait(sk, &wait);
	candidate->pass = rotation_pass(choice->rotation, slot);
	candidate->half_open = queue.half_open;
	candidate->queued = queue.queued;
	candidate->backlog = queue.backlog;
	candidate->weight = worker->weight;
	candidate->flags = worker->flags;
	candidate->state = wait.state;
	candidate->tie = policy_tie(choice->seed, slot);
	return true;
}

/* Keeps the candidate if it beats the best so far. */
static __always_inline void choice_offer(struct choice *choice, __u32 slot,
					 const struct policy_candidate *candidate)
{
	choice->nr_considered++;
	if (choice->slot != NO_SLOT &&
	    !policy_prefers(choice->settings, candidate, &choice->best))
		return;
	choice->best = *candidate;
	choice->slot = slot;
}

static __always_inline bool choice_is_eligible(const struct choice *choice)
{
	return choice->slot != NO_SLOT && policy_class(&choice->best) == CLASS_ELIGIBLE;
}

/* bpf_loop callback: one slot of a small group. */
static long consider_exactly(__u32 slot, struct choice *choice)
{
	struct member *member = bpf_map_lookup_elem(&members, &slot);
	struct policy_candidate candidate;

	if (!member || !candidate_read(choice, slot, member, &candidate))
		return 0;
	candidate.held = worker_held(member->worker);
	choice_offer(choice, slot, &candidate);
	return 0;
}

/*
 * bpf_loop callback: one slot of the refresh. A class that was found by looking at the live state
 * is looked up again only where it was bad; good ones are checked when they make the short list.
 */
static long refresh_slot(__u32 index, struct choice *choice)
{
	__u32 slot = choice->snapshot->cursor + index;
	struct member *member = bpf_map_lookup_elem(&members, &slot);
	struct policy_candidate candidate = {};
	struct worker *worker;
	__u32 *rank, row;
	__u64 load;

	if (!member)
		return 1;
	row = member->worker;
	rank = snapshot_rank(choice->snapshot, slot);
	worker = bpf_map_lookup_elem(&workers, &row);
	if (!member->cookie || !worker) {
		*rank = RANK_NONE;
		return 0;
	}
	if (policy_rank_class(*rank) && !candidate_read(choice, slot, member, &candidate)) {
		*rank = RANK_NONE;
		return 0;
	}
	if (!policy_rank_class(*rank))
		candidate.flags = worker->flags;
	if (choice->settings->policy == POLICY_ROUND_ROBIN)
		load = rotation_pass(choice->rotation, slot) - choice->rotation->clock;
	else
		load = per_weight((__u64)worker_held(row) * LOAD_UNIT, worker->weight);
	*rank = policy_rank(policy_class(&candidate), load);
	return 0;
}

/*
 * Goes on with a pass over the slots, or starts one if the last is old enough. A pass is cut into
 * runs, so that no single connection pays for all of a large machine's counters.
 */
static __always_inline void snapshot_refresh(struct choice *choice)
{
	struct snapshot *snapshot = choice->snapshot;
	__u32 share = REFRESH_SUMS / nr_cpus + 1;
	__u64 now;

	if (!snapshot->cursor) {
		now = bpf_ktime_get_ns();
		if (now - snapshot->refreshed_ns < choice->settings->refresh_ns)
			return;
		snapshot->refreshed_ns = now;
	}
	bpf_loop(share, refresh_slot, choice, 0);
	snapshot->cursor += share;
	if (snapshot->cursor >= choice->nr_blocks * NR_LANES)
		snapshot->cursor = 0;
}

/* bpf_loop callback: compares one slot of each lane with the lane's best. */
static long scan_block(__u32 index, struct choice *choice)
{
	__u32 block = choice->first_block + index, lane;

	if (block >= choice->nr_blocks)
		block -= choice->nr_blocks;
#pragma unroll
	for (lane = 0; lane < NR_LANES; lane++) {
		__u32 slot = block * NR_LANES + lane;
		__u32 rank = *snapshot_rank(choice->snapshot, slot);

		if (rank < choice->lane_rank[lane]) {
			choice->lane_rank[lane] = rank;
			choice->lane_slot[lane] = slot;
		}
	}
	return 0;
}

/* The connections behind a rank: for machines where even a short list has too many sums. */
static __always_inline __u32 rank_held(__u32 rank, __u32 weight)
{
	return (__u64)policy_rank_load(rank) * weight / LOAD_UNIT;
}

/* bpf_loop callback: looks at the best slot of one lane, and learns what is wrong with it. */
static long consider_lane(__u32 lane, struct choice *choice)
{
	__u32 slot = choice->lane_slot[lane & (NR_LANES - 1)];
	__u32 *rank = snapshot_rank(choice->snapshot, slot);
	struct member *member = bpf_map_lookup_elem(&members, &slot);
	struct policy_candidate candidate;

	if (*rank == RANK_NONE || !member)
		return 0;
	if (!candidate_read(choice, slot, member, &candidate)) {
		*rank = RANK_NONE;
		return 0;
	}
	if (NR_LANES * nr_cpus <= EXACT_SUMS)
		candidate.held = worker_held(member->worker);
	else
		candidate.held = rank_held(*rank, candidate.weight);
	*rank = policy_rank(policy_class(&candidate), policy_rank_load(*rank));
	choice_offer(choice, slot, &candidate);
	return 0;
}

static __always_inline void lanes_clear(struct choice *choice)
{
	__u32 lane;

#pragma unroll
	for (lane = 0; lane < NR_LANES; lane++) {
		choice->lane_rank[lane] = RANK_NONE;
		choice->lane_slot[lane] = lane;
	}
}

/* bpf_loop callback: one short list; stops when it gave an eligible listener. */
static long choose_from_short_list(__u32 attempt, struct choice *choice)
{
	lanes_clear(choice);
	bpf_loop(choice->nr_blocks, scan_block, choice, 0);
	bpf_loop(NR_LANES, consider_lane, choice, 0);
	return choice_is_eligible(choice);
}

/* A number below limit, evenly. */
static __always_inline __u32 random_below(__u32 limit)
{
	return (__u64)bpf_get_prandom_u32() * limit >> 32;
}

static __always_inline void choose_from_all(struct choice *choice)
{
	if (choice->nr_slots <= EXACT_SLOTS && choice->nr_slots * nr_cpus <= EXACT_SUMS) {
		bpf_loop(choice->nr_slots, consider_exactly, choice, 0);
		return;
	}
	choice->nr_blocks = (choice->nr_slots + NR_LANES - 1) / NR_LANES;
	/* Equal slots are met in an order that differs between CPUs and runs. */
	choice->first_block = random_below(choice->nr_blocks);
	snapshot_refresh(choice);
	bpf_loop(MAX_SHORT_LISTS, choose_from_short_list, choice, 0);
}

/* bpf_loop callback: one draw of p2c; stops at two candidates of which one is eligible. */
static long consider_draw(__u32 draw, struct choice *choice)
{
	consider_exactly(random_below(choice->nr_slots), choice);
	return choice->nr_considered >= 2 && choice_is_eligible(choice);
}

/* The slot to select, or NO_SLOT if none holds a listener. */
static __always_inline __u32 choose(struct choice *choice)
{
	choice->slot = NO_SLOT;
	choice->nr_slots = choice->settings->nr_slots;
	if (choice->nr_slots > MAX_SLOTS)
		choice->nr_slots = MAX_SLOTS;
	if (choice->settings->policy == POLICY_P2C)
		bpf_loop(MAX_DRAWS, consider_draw, choice, 0);
	if (!choice_is_eligible(choice))
		choose_from_all(choice);
	return choice->slot;
}

/* The selection was accepted: remember it where the next decisions look. */
static __always_inline void choice_commit(struct choice *choice)
{
	struct rotation *rotation = choice->rotation;
	__u32 *rank = snapshot_rank(choice->snapshot, choice->slot);
	__u32 step = LOAD_UNIT;

	if (choice->settings->policy == POLICY_ROUND_ROBIN) {
		step = STRIDE;
		rotation->pass[choice->slot & (MAX_SLOTS - 1)] =
			choice->best.pass + per_weight(step, choice->best.weight);
		/* Two CPUs may turn the clock at once; it is off by a turn then, not more. */
		rotation->clock = choice->best.pass;
	}
	*rank = policy_rank(policy_rank_class(*rank),
			    (__u64)policy_rank_load(*rank) + per_weight(step, choice->best.weight));
}

#endif
