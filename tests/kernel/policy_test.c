/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The policy decides alike on the host and in the kernel.
 */
#include "policy_pair.h"
#include "policy.skel.h"
#include "random.h"
#include "support/sandbox.h"

#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#define NR_ROUNDS 100

/* The seed of the random questions; any is as good. */
#define SEED 20240607

TestSuite(policy, .init = sandbox_enter, .timeout = TEST_SECONDS);

/* Of all sizes, the ends of the range more often than chance would have it. */
static uint32_t draw(struct random *random)
{
	uint64_t bits = random_next(random);
	uint32_t number = (uint32_t)(bits >> 32) >> (bits & 31);

	switch (bits >> 5 & 15) {
	case 0:
		return 0;
	case 1:
		return UINT32_MAX;
	default:
		return number;
	}
}

static void candidate_draw(struct random *random, struct policy_candidate *candidate)
{
	*candidate = (struct policy_candidate){
		.ahead = (uint64_t)draw(random) << (draw(random) & 31),
		.held = draw(random),
		.half_open = draw(random),
		.queued = draw(random),
		.backlog = draw(random),
		.cost = policy_cost(1 + draw(random) % MAX_WEIGHT),
		.flags = draw(random) & WORKER_DRAINING,
		.state = draw(random) % NR_STATES,
		.is_stuck = draw(random) & 1,
		.away_ns = (uint64_t)draw(random) << (draw(random) & 31),
	};
}

/* Every fourth pair differs in little, so that the last steps of the order matter. */
static void pair_draw(struct random *random, struct policy_pair *pair)
{
	memset(pair, 0, sizeof(*pair));
	pair->settings.policy = draw(random) % NR_POLICIES;
	pair->settings.busy_penalty = draw(random);
	pair->settings.slow_start_ns = draw(random);
	pair->age_ns = draw(random);
	pair->seed = draw(random);
	pair->first_slot = draw(random) % MAX_SLOTS;
	pair->second_slot = draw(random) % MAX_SLOTS;
	candidate_draw(random, &pair->first);
	candidate_draw(random, &pair->second);
	if (draw(random) % 4)
		return;
	pair->second = pair->first;
	pair->second.state = draw(random) % NR_STATES;
	pair->second.queued += draw(random) % 2;
}

static void run_in_kernel(const struct policy_bpf *program)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);
	int err = bpf_prog_test_run_opts(bpf_program__fd(program->progs.answer_all), &options);

	cr_assert_eq(err, 0, "run: %s", strerror(errno));
	cr_assert_eq(options.retval, 0);
}

static void expect_same_answers(const struct policy_bpf *program)
{
	size_t i;

	for (i = 0; i < NR_PAIRS; i++) {
		struct policy_answer answer;

		policy_pair_answer(&program->bss->pairs[i], &answer);
		cr_assert(!memcmp(&answer, &program->bss->answers[i], sizeof(answer)),
			  "pair %zu: key %llx here and %llx in the kernel, against %llx and %llx",
			  i, answer.first_key, program->bss->answers[i].first_key,
			  answer.second_key, program->bss->answers[i].second_key);
	}
}

Test(policy, a_hundred_thousand_random_decisions_are_the_same_here_and_in_the_kernel)
{
	struct policy_bpf *program = policy_bpf__open_and_load();
	struct random random = { .state = SEED };
	size_t round, i;

	cr_assert_not_null(program, "load: %s", strerror(errno));
	for (round = 0; round < NR_ROUNDS; round++) {
		for (i = 0; i < NR_PAIRS; i++)
			pair_draw(&random, &program->bss->pairs[i]);
		run_in_kernel(program);
		expect_same_answers(program);
	}
	policy_bpf__destroy(program);
}
