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

#define NO_SLOT (~0u)

/* What one run knows. It lives on the stack and is handed from step to step. */
struct choice {
	struct settings *settings;
	struct rotation *rotation;
	struct snapshot *snapshot;
	__u64 array; /* address of the kernel's array behind listeners */
	__u64 key; /* of the best so far, or KEY_NONE */
	__u32 tie; /* of the best so far */
	__u32 slot; /* the best so far, or NO_SLOT */
	__u32 seed; /* random */
	__u32 nr_slots;
	__u32 nr_considered;
	__u32 first; /* the slot, or block of the snapshot, where the search starts */
	__u32 nr_blocks;
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

/* How far the slot's next turn is ahead of the clock; who was away starts at the clock. */
static __always_inline __u64 rotation_ahead(const struct rotation *rotation, __u32 slot)
{
	__u64 pass = rotation->pass[slot & (MAX_SLOTS - 1)];

	return pass > rotation->clock ? pass - rotation->clock : 0;
}

static __always_inline __u32 *snapshot_rank(struct snapshot *snapshot, __u32 slot)
{
	return &snapshot->rank[slot & (MAX_SLOTS - 1)];
}

/* The live part of a candidate. */
static __always_inline void read_live(__u64 sk, struct policy_candidate *candidate)
{
	struct listener_queue queue;
	struct listener_wait wait;

	listener_read_queue(sk, &queue);
	listener_read_wait(sk, &wait);
	candidate->half_open = queue.half_open;
	candidate->queued = queue.queued;
	candidate->backlog = queue.backlog;
	candidate->state = wait.state;
}

/*
 * Completes a candidate with the live state of its listener and returns its key, or KEY_NONE if that
 * cannot be limit or below: the live state lies in cache lines that other CPUs write, so it is read
 * only where it matters. A global function, so that the verifier looks at it once instead of once for
 * every way that leads to it; a global function has to check its pointers.
 */
__noinline __u64 candidate_key(const struct settings *current, struct policy_candidate *candidate,
			       __u64 sk, __u64 limit)
{
	if (!current || !candidate || policy_key_floor(current, candidate) > limit)
		return KEY_NONE;
	read_live(sk, candidate);
	return policy_key(current, candidate);
}

/* The coarse form, for the snapshot; looks at the live state only when told to. */
__noinline __u32 candidate_rank(const struct settings *current, struct policy_candidate *candidate,
				__u64 sk)
{
	if (!current || !candidate)
		return RANK_NONE;
	if (sk)
		read_live(sk, candidate);
	return policy_rank(policy_class(candidate), policy_load(current, candidate));
}

/*
 * Comparisons of keys are global functions too: to the verifier their answer is just a number, so
 * that it need not follow what each answer says about the keys.
 */
__noinline int key_is_better(__u64 key, __u32 tie, __u64 best, __u32 best_tie)
{
	return key != KEY_NONE && policy_prefers(key, tie, best, best_tie);
}

__noinline int key_is_eligible(__u64 key)
{
	return policy_key_class(key) == CLASS_ELIGIBLE;
}

/* Nothing can be preferred to it, so that the search may end. */
__noinline int key_is_perfect(__u64 key)
{
	return !key;
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

/* Keeps the candidate if it beats the best so far. Returns its key, or KEY_NONE. */
static __always_inline __u64 choice_offer(struct choice *choice, __u32 slot, __u64 sk,
					  struct policy_candidate *candidate)
{
	__u64 key = candidate_key(choice->settings, candidate, sk, choice->key);
	__u32 tie = policy_tie(choice->seed, slot);

	choice->nr_considered++;
	if (key_is_better(key, tie, choice->key, choice->tie)) {
		choice->key = key;
		choice->tie = tie;
		choice->slot = slot;
	}
	return key;
}

static __always_inline void consider_slot(struct choice *choice, __u32 slot)
{
	struct member *member = bpf_map_lookup_elem(&members, &slot);
	__u64 sk = slot_socket(choice->array, slot);
	struct policy_candidate candidate = {};
	struct worker *worker;
	__u32 row;

	if (!sk || !member)
		return;
	row = member->worker;
	worker = bpf_map_lookup_elem(&workers, &row);
	if (!worker)
		return;
	candidate.ahead = rotation_ahead(choice->rotation, slot);
	candidate.held = worker_held(row);
	candidate.cost = worker->cost;
	candidate.flags = worker->flags;
	choice_offer(choice, slot, sk, &candidate);
}

/* bpf_loop callback: one slot of a small group, counted from a random one. */
static long consider_next(__u32 index, struct choice *choice)
{
	__u32 slot = choice->first + index;

	if (slot >= choice->nr_slots)
		slot -= choice->nr_slots;
	consider_slot(choice, slot);
	return stop_if(key_is_perfect(choice->key));
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
	__u64 sk = 0;

	if (!member)
		return 1;
	row = member->worker;
	rank = snapshot_rank(choice->snapshot, slot);
	worker = bpf_map_lookup_elem(&workers, &row);
	if (!member->cookie || !worker) {
		*rank = RANK_NONE;
		return 0;
	}
	candidate.ahead = rotation_ahead(choice->rotation, slot);
	candidate.held = worker_held(row);
	candidate.cost = worker->cost;
	candidate.flags = worker->flags;
	if (policy_rank_class(*rank))
		sk = slot_socket(choice->array, slot);
	*rank = candidate_rank(choice->settings, &candidate, sk);
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
	__u32 block = choice->first + index, lane;

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
static __always_inline __u32 rank_held(__u32 rank)
{
	return policy_rank_load(rank) / (LOAD_UNIT * COST_ONE);
}

/* The rank with the class that the live state showed; unchanged if nobody looked. */
__noinline __u32 rank_learn(__u32 rank, __u64 key)
{
	if (key == KEY_NONE)
		return rank;
	return policy_rank(policy_key_class(key), policy_rank_load(rank));
}

/* bpf_loop callback: looks at the best slot of one lane, and learns what is wrong with it. */
static long consider_lane(__u32 lane, struct choice *choice)
{
	__u32 slot = choice->lane_slot[lane & (NR_LANES - 1)];
	__u32 *rank = snapshot_rank(choice->snapshot, slot);
	struct member *member = bpf_map_lookup_elem(&members, &slot);
	__u64 sk = slot_socket(choice->array, slot), key;
	struct policy_candidate candidate = {};
	struct worker *worker;
	__u32 row;

	if (*rank == RANK_NONE || !member)
		return 0;
	row = member->worker;
	worker = bpf_map_lookup_elem(&workers, &row);
	if (!sk || !worker) {
		*rank = RANK_NONE;
		return 0;
	}
	candidate.ahead = rotation_ahead(choice->rotation, slot);
	candidate.cost = worker->cost;
	candidate.flags = worker->flags;
	if (NR_LANES * nr_cpus <= EXACT_SUMS) {
		candidate.held = worker_held(row);
	} else {
		candidate.held = rank_held(*rank);
		candidate.cost = COST_ONE;
	}
	key = choice_offer(choice, slot, sk, &candidate);
	*rank = rank_learn(*rank, key);
	return stop_if(key_is_perfect(choice->key));
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
	return stop_if(key_is_eligible(choice->key));
}

/* A number below limit, evenly. */
static __always_inline __u32 random_below(__u32 limit)
{
	return (__u64)bpf_get_prandom_u32() * limit >> 32;
}

static __always_inline void choose_from_all(struct choice *choice)
{
	if (choice->nr_slots <= EXACT_SLOTS && choice->nr_slots * nr_cpus <= EXACT_SUMS) {
		choice->first = random_below(choice->nr_slots);
		bpf_loop(choice->nr_slots, consider_next, choice, 0);
		return;
	}
	choice->nr_blocks = (choice->nr_slots + NR_LANES - 1) / NR_LANES;
	/* Equal slots are met in an order that differs between CPUs and runs. */
	choice->first = random_below(choice->nr_blocks);
	snapshot_refresh(choice);
	bpf_loop(MAX_SHORT_LISTS, choose_from_short_list, choice, 0);
}

/* bpf_loop callback: one draw of p2c; stops at two candidates of which one is eligible. */
static long consider_draw(__u32 draw, struct choice *choice)
{
	consider_slot(choice, random_below(choice->nr_slots));
	return stop_if(choice->nr_considered >= 2 && key_is_eligible(choice->key));
}

/* The slot to select, or NO_SLOT if none holds a listener. */
static __always_inline __u32 choose(struct choice *choice)
{
	choice->key = KEY_NONE;
	choice->tie = ~0u;
	choice->slot = NO_SLOT;
	choice->nr_considered = 0;
	choice->nr_slots = choice->settings->nr_slots;
	if (choice->nr_slots > MAX_SLOTS)
		choice->nr_slots = MAX_SLOTS;
	if (choice->settings->policy == POLICY_P2C)
		bpf_loop(MAX_DRAWS, consider_draw, choice, 0);
	if (!key_is_eligible(choice->key))
		choose_from_all(choice);
	return choice->slot;
}

/* The selection was accepted: remember it where the next decisions look. */
static __always_inline void choice_commit(struct choice *choice, __u32 cost)
{
	__u32 *rank = snapshot_rank(choice->snapshot, choice->slot);
	__u64 step = policy_step(choice->settings, cost);
	struct rotation *rotation = choice->rotation;
	__u64 turn;

	if (choice->settings->policy == POLICY_ROUND_ROBIN) {
		/* Two CPUs may turn the clock at once; it is off by a turn then, not more. */
		turn = rotation->clock + rotation_ahead(rotation, choice->slot);
		rotation->pass[choice->slot & (MAX_SLOTS - 1)] = turn + step;
		rotation->clock = turn;
	}
	*rank = policy_rank(policy_rank_class(*rank), policy_rank_load(*rank) + step);
}

#endif
