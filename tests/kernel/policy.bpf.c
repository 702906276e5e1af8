// SPDX-License-Identifier: GPL-2.0-only
/*
 * The policy as the kernel computes it, on questions from user space.
 */
#include <linux/bpf.h>
#include "policy_pair.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct policy_pair pairs[NR_PAIRS];
struct policy_answer answers[NR_PAIRS];

/* bpf_loop callback. */
static long answer_one(__u32 index, void *unused)
{
	if (index >= NR_PAIRS)
		return 1;
	policy_pair_answer(&pairs[index], &answers[index]);
	return 0;
}

SEC("syscall")
int answer_all(void *ctx)
{
	bpf_loop(NR_PAIRS, answer_one, NULL, 0);
	return 0;
}
