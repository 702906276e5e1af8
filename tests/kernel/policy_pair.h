/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * policy_pair: one question to the policy and all answers to it. The same function answers on the
 * host and, in policy.bpf.c, in the kernel.
 */
#ifndef TESTS_KERNEL_POLICY_PAIR_H
#define TESTS_KERNEL_POLICY_PAIR_H

#include "socksteer/policy.h"

/* Questions that one run of the program answers. */
#define NR_PAIRS 1000

struct policy_pair {
	struct settings settings;
	struct policy_candidate first;
	struct policy_candidate second;
	__u32 seed;
	__u32 first_slot;
	__u32 second_slot;
	__u32 reserved;
	__u64 age_ns;
};

struct policy_answer {
	__u64 first_key;
	__u64 second_key;
	__u64 first_floor;
	__u64 load;
	__u64 step;
	__u32 first_tie;
	__u32 second_tie;
	__u32 rank;
	__u32 class;
	__u32 prefers_first;
	__u32 ramped;
};

static inline void policy_pair_answer(const struct policy_pair *pair, struct policy_answer *answer)
{
	const struct settings *settings = &pair->settings;

	answer->first_key = policy_key(settings, &pair->first);
	answer->second_key = policy_key(settings, &pair->second);
	answer->first_floor = policy_key_floor(settings, &pair->first);
	answer->load = policy_load(settings, &pair->first);
	answer->step = policy_step(settings, pair->first.cost);
	answer->first_tie = policy_tie(pair->seed, pair->first_slot);
	answer->second_tie = policy_tie(pair->seed, pair->second_slot);
	answer->class = policy_key_class(answer->first_key);
	answer->rank = policy_rank(policy_class(&pair->first), answer->load);
	answer->prefers_first = (__u32)policy_prefers(answer->first_key, answer->first_tie,
						      answer->second_key, answer->second_tie);
	answer->ramped = policy_ramp(pair->first.cost, pair->age_ns, settings->slow_start_ns);
}

#endif
