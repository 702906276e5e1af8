/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The decision: which of two listeners should get the next connection.
 *
 * Pure code: no maps, no helpers, no globals, no division, no floating point. It is compiled into
 * steer, into the host's tests and simulator, and into a test program that runs in the kernel.
 * The caller owns all storage and looks at as many candidates as it likes, one after another,
 * keeping the better one; policy_prefers() is a strict total order as long as the ties differ.
 *
 * Order of preference: class, then the policy's load, then idle before busy, then the shorter
 * queue, then a random tie: never the lowest index, which makes every CPU choose the same one.
 */
#ifndef SOCKSTEER_POLICY_H
#define SOCKSTEER_POLICY_H

#include "socksteer/types.h"

/* Load is counted in fractions of a connection, so that a busy worker can weigh half of one. */
#define LOAD_UNIT 256

/*
 * What a busy worker weighs more than an idle one. Below one connection, or a worker that is busy
 * accepting would be passed over for one that holds more.
 */
#define DEFAULT_BUSY_PENALTY (LOAD_UNIT / 2)

/* Everything that is known of one listener and its worker at the moment of the decision. */
struct policy_candidate {
	__u64 pass; /* round-robin only: virtual time of its next turn */
	__u32 held; /* connections of the worker, over all its listeners */
	__u32 half_open; /* handshakes towards this listener */
	__u32 queued; /* established, not accepted yet */
	__u32 backlog; /* limit of queued */
	__u32 weight; /* 1..MAX_WEIGHT */
	__u32 flags; /* enum worker_flag */
	__u32 state; /* enum worker_state */
	__u32 tie; /* from policy_tie() */
};

/* Lower is better. When nobody is eligible the best of the next class is taken: never refuse. */
enum policy_class {
	CLASS_ELIGIBLE,
	CLASS_NEARLY_FULL,
	CLASS_UNATTENDED,
	CLASS_DRAINING,
};

/*
 * A random number for each slot of one decision: equal candidates are then chosen evenly, and the
 * order in which they are looked at does not matter. The multipliers are those of the 32-bit
 * finalizer of MurmurHash3 (public domain), which lets every input bit reach every output bit.
 */
static inline __u32 policy_tie(__u32 seed, __u32 slot)
{
	__u32 tie = seed ^ (slot * 0x9e3779b1u);

	tie ^= tie >> 16;
	tie *= 0x85ebca6bu;
	tie ^= tie >> 13;
	tie *= 0xc2b2ae35u;
	return tie ^ (tie >> 16);
}

/*
 * The kernel drops a SYN, and later the last ACK, when more than backlog connections are queued.
 * Half-open handshakes will be queued soon. An eighth is kept free for those that other CPUs are
 * steering at this moment; small queues keep one place. An empty queue has room whatever its limit.
 */
static inline int policy_nearly_full(const struct policy_candidate *candidate)
{
	__u64 expected = (__u64)candidate->queued + candidate->half_open;

	return expected && expected + (candidate->backlog >> 3) >= candidate->backlog;
}

static inline __u32 policy_class(const struct policy_candidate *candidate)
{
	if (candidate->flags & WORKER_DRAINING)
		return CLASS_DRAINING;
	if (candidate->state == STATE_UNATTENDED)
		return CLASS_UNATTENDED;
	if (policy_nearly_full(candidate))
		return CLASS_NEARLY_FULL;
	return CLASS_ELIGIBLE;
}

/* Load before weighting, in LOAD_UNITs. */
static inline __u64 policy_load(const struct settings *settings,
				const struct policy_candidate *candidate)
{
	__u64 load = (__u64)candidate->held * LOAD_UNIT;

	if (settings->policy == POLICY_LEAST_CONN)
		return load;
	load += (__u64)candidate->half_open * LOAD_UNIT;
	if (candidate->state == STATE_BUSY)
		load += settings->busy_penalty;
	return load;
}

/* Compares load per weight by cross-multiplying: below 2^42 x 2^10, so 64 bits hold it. */
static inline int policy_compare_load(const struct settings *settings,
				      const struct policy_candidate *a,
				      const struct policy_candidate *b)
{
	__u64 load_a, load_b;

	if (settings->policy == POLICY_ROUND_ROBIN) {
		load_a = a->pass;
		load_b = b->pass;
	} else {
		load_a = policy_load(settings, a) * b->weight;
		load_b = policy_load(settings, b) * a->weight;
	}
	if (load_a == load_b)
		return 0;
	return load_a < load_b ? -1 : 1;
}

/* True if a should get the next connection rather than b. */
static inline int policy_prefers(const struct settings *settings, const struct policy_candidate *a,
				 const struct policy_candidate *b)
{
	__u32 class_a = policy_class(a), class_b = policy_class(b);
	int by_load;

	if (class_a != class_b)
		return class_a < class_b;
	by_load = policy_compare_load(settings, a, b);
	if (by_load)
		return by_load < 0;
	if (settings->policy == POLICY_ROUND_ROBIN)
		return a->tie < b->tie;
	if ((a->state == STATE_BUSY) != (b->state == STATE_BUSY))
		return b->state == STATE_BUSY;
	if (a->queued != b->queued)
		return a->queued < b->queued;
	return a->tie < b->tie;
}

/*
 * Ranks are the coarse form of the order, one number per slot, for the snapshot that large groups
 * keep: class in the top two bits, load per weight below, in LOAD_UNITs and saturating. RANK_NONE
 * is a slot without a listener.
 */
#define RANK_NONE 0xffffffffu
#define RANK_CLASS_SHIFT 30
#define RANK_LOAD_MAX ((1u << RANK_CLASS_SHIFT) - 2)

static inline __u32 policy_rank(__u32 class, __u64 load_per_weight)
{
	if (load_per_weight > RANK_LOAD_MAX)
		load_per_weight = RANK_LOAD_MAX;
	return class << RANK_CLASS_SHIFT | (__u32)load_per_weight;
}

static inline __u32 policy_rank_class(__u32 rank)
{
	return rank >> RANK_CLASS_SHIFT;
}

static inline __u32 policy_rank_load(__u32 rank)
{
	return rank & ((1u << RANK_CLASS_SHIFT) - 1);
}

#endif
