/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Choosing a slot. choose() and choice_commit() are all that steer uses; the order of preference is
 * policy.h's.
 *
 * Small groups are compared exactly on every run. In a large group the cost of summing counters
 * over all CPUs would grow with workers x CPUs, so each CPU ranks the slots by a snapshot of its
 * own, corrected by its own selections, and looks exactly at a short list only. Either search ends
 * early at a listener that cannot be beaten: attended, idle and without any load.
 *
 * Two things shape the code. A return costs some 15 ns where the kernel guards returns against
 * speculation, so a candidate costs one call. And the verifier walks every path: what branches much
 * is in global functions, which it verifies once each, and keys are compared without branches.
 */
#ifndef SOCKSTEER_CHOOSE_H
#define SOCKSTEER_CHOOSE_H

#include "candidate.h"
#include "group_maps.h"
#include "maps.h"
#include "socksteer/policy.h"
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

/*
 * Up to both limits every slot is compared exactly. The first bounds the live state that is read,
 * the second the counters that are summed.
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

#define NO_SLOT (~0u)

/* What one run knows. It lives on the stack and is handed from step to step. */
struct choice {
	struct settings *settings;
	struct rotation *rotation;
	struct snapshot *snapshot; /* large groups only */
	__u64 now; /* CLOCK_MONOTONIC while a listener may be in its slow start, else 0 */
	__u64 key; /* of the best so far, or KEY_NONE */
	__u64 tie; /* of the best so far */
	__u64 slot; /* the best so far, if there is a key */
	__u32 seed; /* random */
	__u32 nr_slots;
	__u32 nr_blocks;
	__u32 first; /* slot, or block of the snapshot, where the search starts */
	__u32 whole; /* the scan may not end early */
	__u64 limit; /* highest rank that is worth a look; zero where an unloaded listener was met */
	__u32 lane_rank[NR_LANES];
	__u32 lane_slot[NR_LANES];
};

/* The rank as it is after a look: with the class of the live state, or that of an empty slot. */
__noinline __u32 slot_learn(__u32 rank, __u64 key)
{
	if (key == KEY_NONE)
		return RANK_NONE;
	if (key == KEY_LOSES)
		return rank;
	return policy_rank(policy_key_class(key), policy_rank_load(rank));
}

/* All ones if a is below b, else zero; for numbers below 2^63. */
static __always_inline __u64 mask_of_less(__u64 a, __u64 b)
{
	__u64 difference = a - b;

	/* In assembly, or the compiler makes a branch of it. */
	asm volatile("%0 s>>= 63" : "+r"(difference));
	return difference;
}

/* Keeps a slot if its key beats the best so far, or equals it with the lower tie. */
static __always_inline void choice_offer(struct choice *choice, __u32 slot, __u64 key)
{
	__u64 tie = policy_tie(choice->seed, slot), better, equal;

	better = mask_of_less(key, choice->key);
	equal = ~(better | mask_of_less(choice->key, key));
	better |= equal & mask_of_less(tie, choice->tie);
	choice->key ^= (choice->key ^ key) & better;
	choice->tie ^= (choice->tie ^ tie) & better;
	choice->slot ^= (choice->slot ^ slot) & better;
}

static __always_inline bool choice_is_perfect(const struct choice *choice)
{
	return !choice->key;
}

static __always_inline bool choice_is_eligible(const struct choice *choice)
{
	return !(choice->key >> KEY_CLASS_SHIFT);
}

/* A number below limit, evenly, of 32 random bits. */
static __always_inline __u32 random_below(__u32 random, __u32 limit)
{
	return (__u64)random * limit >> 32;
}

/*
 * What a bpf_loop callback returns: 1 ends the loop. The compiler knows that the condition is 0 or 1
 * and would leave out the masking that the verifier, which does not, insists on.
 */
static __always_inline long stop_if(long condition)
{
	asm volatile("%0 &= 1" : "+r"(condition));
	return condition;
}

/*
 * Follows a bpf_loop that could end like another. The compiler would make one call of the two, with
 * the callback in a register, and the kernel puts a loop inline only where it knows the callback.
 */
#define KEEP_APART(name) asm volatile("# " #name)

/* bpf_loop callback: one slot of a small group, counted from a random one. */
static long consider_next(__u32 index, struct choice *choice)
{
	__u32 slot = choice->first + index;

	if (slot >= choice->nr_slots)
		slot -= choice->nr_slots;
	choice_offer(choice, slot,
		     slot_key(choice->settings, slot, choice->now, choice->key, EXACTLY));
	return stop_if(choice_is_perfect(choice));
}

static __always_inline void choose_exactly(struct choice *choice)
{
	choice->first = random_below(choice->seed, choice->nr_slots);
	bpf_loop(choice->nr_slots, consider_next, choice, 0);
	KEEP_APART(exactly);
}

static __always_inline __u32 *snapshot_rank(struct snapshot *ranks, __u32 slot)
{
	return &ranks->rank[slot & (MAX_SLOTS - 1)];
}

/* bpf_loop callback: one slot of the refresh. */
static long refresh_slot(__u32 index, struct choice *choice)
{
	__u32 slot = choice->snapshot->cursor + index;
	__u32 *rank = snapshot_rank(choice->snapshot, slot);

	*rank = slot_rank(choice->settings, slot, choice->now, *rank);
	return 0;
}

/*
 * Goes on with a pass over the slots, or starts one if the last is old enough. A pass is cut into
 * shares, so that no single connection pays for all of a large machine's counters.
 */
static __always_inline void snapshot_refresh(struct choice *choice)
{
	struct snapshot *ranks = choice->snapshot;
	__u32 end = choice->nr_blocks * NR_LANES;
	__u32 share = REFRESH_SUMS / nr_cpus + 1;
	__u64 now;

	if (!ranks->cursor) {
		now = bpf_ktime_get_ns();
		if (now - ranks->refreshed_ns < choice->settings->refresh_ns)
			return;
		ranks->refreshed_ns = now;
	}
	if (ranks->cursor + share > end)
		share = end - ranks->cursor;
	bpf_loop(share, refresh_slot, choice, 0);
	ranks->exhausted = 0;
	ranks->cursor += share;
	if (ranks->cursor >= end)
		ranks->cursor = 0;
}

/*
 * bpf_loop callback: compares one slot of each lane with the lane's best. Rank zero cannot be beaten,
 * so a scan ends there, unless it is to be whole.
 */
static long scan_block(__u32 index, struct choice *choice)
{
	__u32 block = choice->first + index, lane;
	__u64 loaded = ~0ull;

	if (block >= choice->nr_blocks)
		block -= choice->nr_blocks;
#pragma unroll
	for (lane = 0; lane < NR_LANES; lane++) {
		__u32 slot = block * NR_LANES + lane;
		__u64 rank = *snapshot_rank(choice->snapshot, slot);
		__u32 better = (__u32)mask_of_less(rank, choice->lane_rank[lane]);

		choice->lane_rank[lane] ^= (choice->lane_rank[lane] ^ (__u32)rank) & better;
		choice->lane_slot[lane] ^= (choice->lane_slot[lane] ^ slot) & better;
		loaded &= mask_of_less(0, rank);
	}
	choice->limit &= loaded;
	return stop_if(!loaded && !choice->whole);
}

/* bpf_loop callback: looks at the best slot of one lane, and learns what is wrong with it. */
static long consider_lane(__u32 lane, struct choice *choice)
{
	__u32 slot = choice->lane_slot[lane & (NR_LANES - 1)];
	__u32 *learned = snapshot_rank(choice->snapshot, slot);
	__u32 rank = *learned;
	__u64 key;

	/* Where there are unloaded listeners, only they count. */
	if (rank > choice->limit || rank == RANK_NONE)
		return 0;
	key = slot_key(choice->settings, slot, choice->now, choice->key,
		       !choice->whole || NR_LANES * nr_cpus <= EXACT_SUMS ? EXACTLY : rank);
	choice_offer(choice, slot, key);
	*learned = slot_learn(rank, key);
	return stop_if(choice_is_perfect(choice));
}

static __always_inline void short_list(struct choice *choice)
{
	__u32 lane;

#pragma unroll
	for (lane = 0; lane < NR_LANES; lane++) {
		choice->lane_rank[lane] = RANK_NONE;
		choice->lane_slot[lane] = lane;
	}
	choice->limit = ~0ull;
	bpf_loop(choice->nr_blocks, scan_block, choice, 0);
}

/*
 * Looks for an unloaded listener by what the snapshot says, however old: the candidate proves itself
 * by its live state. As long as there are any, nothing has to be refreshed.
 */
static __always_inline void choose_unloaded(struct choice *choice)
{
	if (choice->snapshot->exhausted)
		return;
	choice->whole = 0;
	short_list(choice);
	if (choice->limit)
		choice->snapshot->exhausted = 1;
	else
		bpf_loop(NR_LANES, consider_lane, choice, 0);
}

/* bpf_loop callback: one short list of all; what was learned from one makes the next a better one. */
static long choose_from_short_list(__u32 attempt, struct choice *choice)
{
	choice->whole = 1;
	short_list(choice);
	choice->limit = ~0ull;
	bpf_loop(NR_LANES, consider_lane, choice, 0);
	return stop_if(choice_is_eligible(choice));
}

static __always_inline void choose_by_snapshot(struct choice *choice)
{
	const __u32 row = 0;

	choice->snapshot = bpf_map_lookup_elem(&snapshot, &row);
	if (!choice->snapshot)
		return;
	choice->nr_blocks = (choice->nr_slots + NR_LANES - 1) / NR_LANES;
	/* Equal slots are met in an order that differs between CPUs and runs. */
	choice->first = random_below(choice->seed, choice->nr_blocks);
	choose_unloaded(choice);
	if (choice_is_perfect(choice))
		return;
	snapshot_refresh(choice);
	bpf_loop(MAX_SHORT_LISTS, choose_from_short_list, choice, 0);
	KEEP_APART(by_snapshot);
}

/* bpf_loop callback: one of two random candidates, or of more until one is eligible. */
static long consider_draw(__u32 draw, struct choice *choice)
{
	__u32 slot = random_below(policy_tie(choice->seed, MAX_SLOTS + draw), choice->nr_slots);

	choice_offer(choice, slot,
		     slot_key(choice->settings, slot, choice->now, KEY_NONE, EXACTLY));
	return stop_if(choice_is_perfect(choice) || (draw && choice_is_eligible(choice)));
}

/* The slot to select, or NO_SLOT if none holds a listener. */
static __always_inline __u32 choose(struct choice *choice)
{
	choice->key = KEY_NONE;
	choice->tie = ~0u;
	choice->slot = 0;
	choice->snapshot = NULL;
	choice->nr_slots = choice->settings->nr_slots;
	if (choice->nr_slots > MAX_SLOTS)
		choice->nr_slots = MAX_SLOTS;
	if (choice->settings->policy == POLICY_P2C)
		bpf_loop(MAX_DRAWS, consider_draw, choice, 0);
	if (!choice_is_eligible(choice)) {
		if (choice->nr_slots <= EXACT_SLOTS && choice->nr_slots * nr_cpus <= EXACT_SUMS)
			choose_exactly(choice);
		else
			choose_by_snapshot(choice);
	}
	return choice->key == KEY_NONE ? NO_SLOT : choice->slot;
}

static __always_inline void rotation_turn(struct rotation *turns, __u32 slot, __u64 step)
{
	__u64 turn = turns->clock + rotation_ahead(turns, slot);

	/* Two CPUs may turn the clock at once; it is off by a turn then, not more. */
	turns->pass[slot & (MAX_SLOTS - 1)] = turn + step;
	turns->clock = turn;
}

/* The selection was accepted: remember it where the next decisions look. */
static __always_inline void choice_commit(struct choice *choice, const struct member *member)
{
	bool in_turn = choice->settings->policy == POLICY_ROUND_ROBIN;
	__u32 slot = choice->slot, row = member->worker, *rank;
	struct worker *worker;
	__u64 step;

	if (!in_turn && !choice->snapshot)
		return;
	worker = bpf_map_lookup_elem(&workers, &row);
	if (!worker)
		return;
	step = policy_step(choice->settings,
			   member_cost(choice->settings, member, worker, choice->now));
	if (in_turn)
		rotation_turn(choice->rotation, slot, step);
	if (choice->snapshot) {
		rank = snapshot_rank(choice->snapshot, slot);
		*rank = policy_rank(policy_rank_class(*rank), policy_rank_load(*rank) + step);
	}
}

#endif
