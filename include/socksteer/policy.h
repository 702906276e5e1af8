/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The decision: which of two listeners should get the next connection.
 *
 * Pure code: no maps, no helpers, no globals, no division, no floating point. It is compiled into
 * steer, into the host's tests and simulator, and into a test program that runs in the kernel.
 *
 * Everything known of a listener is folded into one number, its key; the lowest key wins, and a
 * random tie decides between equals: never the lowest index, which makes every CPU choose the same.
 * From the highest bit down:
 *
 *     1 bit    zero, so that a key can be subtracted from another without a borrow
 *     2 bits   class: eligible, nearly full, stuck, draining
 *     46 bits  load by the policy, over weight
 *     1 bit    busy
 *     14 bits  connections waiting to be accepted
 */
#ifndef SOCKSTEER_POLICY_H
#define SOCKSTEER_POLICY_H

#include "socksteer/types.h"

/* Load is counted in fractions of a connection, so that a busy worker can weigh half of one. */
#define LOAD_UNIT 256

/*
 * What a busy worker weighs more than an idle one. Below one connection, or a worker that is busy
 * accepting would be passed over for one that holds more. It weighs that much again for each doubling of
 * the time that it has been busy, from 2^23 ns, 8 milliseconds, on: one that stays busy with few
 * connections is worse off than an idle one with several. Doublings, because two workers that are always
 * busy shall not differ by when they were looked at last.
 */
#define DEFAULT_BUSY_PENALTY (LOAD_UNIT / 2)
#define BUSY_UNIT_SHIFT 23
#define BUSY_DOUBLINGS 8

/* What one unit of load costs a worker of weight 1, see policy_cost(). */
#define COST_ONE (1u << 16)

/* One round-robin turn of a worker of weight 1. */
#define STRIDE (1u << 20)

#define KEY_CLASS_SHIFT 61
#define KEY_LOAD_SHIFT 15
#define KEY_BUSY_SHIFT 14
/* Some four million connections of a worker of weight 1; what holds more counts as holding that. */
#define KEY_LOAD_MAX ((1ull << (KEY_CLASS_SHIFT - KEY_LOAD_SHIFT)) - 2)
#define KEY_QUEUED_MAX ((1u << KEY_BUSY_SHIFT) - 1)
/* Worse than any listener: an empty slot, and one that was given up before its key was known. */
#define KEY_NONE (~0ull >> 1)
#define KEY_LOSES (KEY_NONE - 1)

/* Everything that is known of one listener and its worker at the moment of the decision. */
struct policy_candidate {
	__u64 ahead; /* round-robin only: how far its next turn is ahead of the clock, see STRIDE */
	__u32 held; /* connections of the worker, over all its listeners */
	__u32 half_open; /* handshakes towards this listener */
	__u32 queued; /* established, not accepted yet */
	__u32 backlog; /* limit of queued */
	__u32 cost; /* policy_cost() of the worker's weight */
	__u32 flags; /* enum worker_flag */
	__u32 state; /* enum worker_state */
	__u32 is_stuck; /* the first one in its queue is not accepted */
	__u64 away_ns; /* how long it is certain not to have waited for events */
};

/* Lower is better. When nobody is eligible the best of the next class is taken: never refuse. */
enum policy_class {
	CLASS_ELIGIBLE,
	CLASS_NEARLY_FULL,
	CLASS_STUCK, /* or unattended */
	CLASS_DRAINING,
};

/* For user space, which writes it beside the weight. weight is 1..MAX_WEIGHT. */
static inline __u32 policy_cost(__u32 weight)
{
	return COST_ONE / weight;
}

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

static inline enum policy_class policy_class(const struct policy_candidate *candidate)
{
	if (candidate->flags & WORKER_DRAINING)
		return CLASS_DRAINING;
	if (candidate->is_stuck || candidate->state == STATE_UNATTENDED)
		return CLASS_STUCK;
	if (policy_nearly_full(candidate))
		return CLASS_NEARLY_FULL;
	return CLASS_ELIGIBLE;
}

/* How much a listener in its slow start can weigh more than after it. */
#define RAMP_MAX 1024

/*
 * The cost during slow start: load of a listener that joined age_ns ago weighs as if its worker had
 * only that part of its weight. Without load it weighs nothing either way, so its first connection
 * comes at once and the rest by and by. This divides, but only while a listener is new.
 */
static inline __u32 policy_ramp(__u32 cost, __u64 age_ns, __u64 slow_start_ns)
{
	__u64 factor;

	if (age_ns >= slow_start_ns)
		return cost;
	/* In 1/1024, so that the ramp is smooth where it ends. */
	factor = (slow_start_ns << 10) / (age_ns ? age_ns : 1);
	if (factor > RAMP_MAX << 10)
		factor = RAMP_MAX << 10;
	return (__u32)(cost * factor >> 10);
}

/* units of load of a worker that pays cost for each; below 2^48, and saturating. */
static inline __u64 policy_weigh(__u64 units, __u32 cost)
{
	__u64 load = units * cost;

	return load < KEY_LOAD_MAX ? load : KEY_LOAD_MAX;
}

/* What a busy worker weighs more, in LOAD_UNITs. Without branches: each would double the verifier's work. */
static inline __u64 policy_busy_units(const struct settings *settings, __u64 away_ns)
{
	const __u32 full = (1 << BUSY_DOUBLINGS) - 1;
	__u64 away = away_ns >> BUSY_UNIT_SHIFT;
	__u32 times = 1, i;

	if (away > full)
		away = full;
	/* One more for each bit of away, the highest one and all below. */
	for (i = 0; i < BUSY_DOUBLINGS; i++)
		times += ((away >> i) + full) >> BUSY_DOUBLINGS;
	return (__u64)settings->busy_penalty * times;
}

static inline __u64 policy_load(const struct settings *settings,
				const struct policy_candidate *candidate)
{
	__u64 units = (__u64)candidate->held * LOAD_UNIT;

	if (settings->policy == POLICY_ROUND_ROBIN)
		return candidate->ahead < KEY_LOAD_MAX ? candidate->ahead : KEY_LOAD_MAX;
	if (settings->policy != POLICY_LEAST_CONN) {
		units += (__u64)candidate->half_open * LOAD_UNIT;
		if (candidate->state == STATE_BUSY)
			units += policy_busy_units(settings, candidate->away_ns);
	}
	return policy_weigh(units, candidate->cost);
}

/*
 * The key. Zero is an eligible, idle listener without any load: it may be equalled, never beaten.
 * Turns are what round-robin is about, so it does not look at idle or busy.
 */
static inline __u64 policy_key(const struct settings *settings,
			       const struct policy_candidate *candidate)
{
	__u64 key = policy_load(settings, candidate) << KEY_LOAD_SHIFT;

	key |= (__u64)policy_class(candidate) << KEY_CLASS_SHIFT;
	if (settings->policy == POLICY_ROUND_ROBIN)
		return key;
	if (candidate->state == STATE_BUSY)
		key |= 1ull << KEY_BUSY_SHIFT;
	return key | (candidate->queued < KEY_QUEUED_MAX ? candidate->queued : KEY_QUEUED_MAX);
}

/* The lowest key that a listener can have of which only held and cost, or ahead, are known yet. */
static inline __u64 policy_key_floor(const struct settings *settings,
				     const struct policy_candidate *candidate)
{
	if (settings->policy == POLICY_ROUND_ROBIN)
		return (candidate->ahead < KEY_LOAD_MAX ? candidate->ahead : KEY_LOAD_MAX)
		       << KEY_LOAD_SHIFT;
	return policy_weigh((__u64)candidate->held * LOAD_UNIT, candidate->cost) << KEY_LOAD_SHIFT;
}

static inline enum policy_class policy_key_class(__u64 key)
{
	return (enum policy_class)(key >> KEY_CLASS_SHIFT);
}

/* True if the first should get the next connection rather than the second. */
static inline int policy_prefers(__u64 key, __u32 tie, __u64 other_key, __u32 other_tie)
{
	return key != other_key ? key < other_key : tie < other_tie;
}

/*
 * Ranks are the upper half of keys: class, and load in LOAD_UNITs of a worker of weight 1. The
 * snapshot that large groups keep has one for each slot.
 */
#define RANK_SHIFT 31
#define RANK_CLASS_SHIFT (KEY_CLASS_SHIFT - RANK_SHIFT)
#define RANK_NONE ((__u32)(KEY_NONE >> RANK_SHIFT))
#define RANK_LOAD_MAX ((1u << RANK_CLASS_SHIFT) - 2)

static inline __u32 policy_rank(enum policy_class class, __u64 load)
{
	load >>= RANK_SHIFT - KEY_LOAD_SHIFT;
	if (load > RANK_LOAD_MAX)
		load = RANK_LOAD_MAX;
	return (__u32) class << RANK_CLASS_SHIFT | (__u32)load;
}

static inline enum policy_class policy_rank_class(__u32 rank)
{
	return (enum policy_class)(rank >> RANK_CLASS_SHIFT);
}

/* The load of a rank, in the scale of policy_load(). */
static inline __u64 policy_rank_load(__u32 rank)
{
	return (__u64)(rank & ((1u << RANK_CLASS_SHIFT) - 1)) << (RANK_SHIFT - KEY_LOAD_SHIFT);
}

/* What one more connection adds to the load. */
static inline __u64 policy_step(const struct settings *settings, __u32 cost)
{
	if (settings->policy == POLICY_ROUND_ROBIN)
		return (__u64)STRIDE * cost / COST_ONE;
	return (__u64)LOAD_UNIT * cost;
}

#endif
