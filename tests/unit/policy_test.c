/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The decision, as properties that hold for any candidates, and as tables for what a person can
 * work out.
 */
#include "socksteer/policy.h"
#include "random.h"

#include <criterion/criterion.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define NR_TRIALS 200000

/* Of all random trials; any is as good. */
#define SEED 20240607

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

static struct policy_candidate candidate_draw(struct random *random)
{
	return (struct policy_candidate){
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

static struct settings settings_draw(struct random *random)
{
	return (struct settings){
		.policy = draw(random) % NR_POLICIES,
		.busy_penalty = draw(random),
	};
}

/* A candidate that has room and is served, and nothing else about it. */
static struct policy_candidate usual(uint32_t held)
{
	return (struct policy_candidate){
		.held = held,
		.backlog = 511,
		.cost = policy_cost(DEFAULT_WEIGHT),
		.state = STATE_IDLE,
	};
}

Test(policy, an_ineligible_candidate_is_never_preferred_to_an_eligible_one)
{
	struct random random = { .state = SEED };
	size_t nr_mixed = 0, trial;

	for (trial = 0; trial < NR_TRIALS; trial++) {
		struct settings settings = settings_draw(&random);
		struct policy_candidate a = candidate_draw(&random), b = candidate_draw(&random);
		uint64_t key_a = policy_key(&settings, &a), key_b = policy_key(&settings, &b);

		if (policy_class(&a) >= policy_class(&b))
			continue;
		nr_mixed++;
		cr_assert(policy_prefers(key_a, UINT32_MAX, key_b, 0), "trial %zu", trial);
		cr_assert_not(policy_prefers(key_b, 0, key_a, UINT32_MAX), "trial %zu", trial);
	}
	cr_expect_gt(nr_mixed, NR_TRIALS / 10);
}

Test(policy, a_key_tells_its_class_and_beats_an_empty_slot)
{
	struct random random = { .state = SEED };
	size_t trial;

	for (trial = 0; trial < NR_TRIALS; trial++) {
		struct settings settings = settings_draw(&random);
		struct policy_candidate candidate = candidate_draw(&random);
		uint64_t key = policy_key(&settings, &candidate);

		cr_assert_eq(policy_key_class(key), policy_class(&candidate), "trial %zu", trial);
		cr_assert_lt(key, KEY_NONE, "trial %zu", trial);
	}
}

struct choice {
	uint64_t key;
	uint32_t tie;
};

static bool prefers(const struct choice *a, const struct choice *b)
{
	return policy_prefers(a->key, a->tie, b->key, b->tie);
}

/* Few different values, so that equal keys come up. */
static struct choice choice_draw(struct random *random, const struct settings *settings,
				 uint32_t slot)
{
	struct policy_candidate candidate = usual(random_below(random, 3));

	candidate.state = random_below(random, NR_STATES);
	candidate.queued = random_below(random, 2);
	return (struct choice){ policy_key(settings, &candidate), policy_tie(SEED, slot) };
}

Test(policy, preference_is_a_strict_total_order)
{
	struct random random = { .state = SEED };
	size_t trial;

	for (trial = 0; trial < NR_TRIALS; trial++) {
		struct settings settings = settings_draw(&random);
		struct choice a = choice_draw(&random, &settings, 0);
		struct choice b = choice_draw(&random, &settings, 1);
		struct choice c = choice_draw(&random, &settings, 2);

		cr_assert_not(prefers(&a, &a));
		cr_assert_neq(prefers(&a, &b), prefers(&b, &a), "trial %zu", trial);
		if (prefers(&a, &b) && prefers(&b, &c))
			cr_assert(prefers(&a, &c), "trial %zu", trial);
	}
}

Test(policy, more_of_anything_is_never_better)
{
	struct random random = { .state = SEED };
	size_t trial;

	for (trial = 0; trial < NR_TRIALS; trial++) {
		struct settings settings = settings_draw(&random);
		struct policy_candidate candidate = candidate_draw(&random);
		uint64_t key = policy_key(&settings, &candidate);
		uint32_t *counts[] = { &candidate.held, &candidate.half_open, &candidate.queued };
		uint32_t *count = counts[random_below(&random, COUNT(counts))];

		if (*count == UINT32_MAX)
			continue;
		*count += 1 + (uint32_t)random_below(&random, UINT32_MAX - *count);
		cr_assert_geq(policy_key(&settings, &candidate), key, "trial %zu", trial);
	}
}

/* True where held / weight of a is below that of b by more than rounding a weight can shift it. */
static bool is_clearly_less(uint64_t held_a, uint64_t weight_a, uint64_t held_b, uint64_t weight_b)
{
	/* A cost is rounded down by less than 1 in COST_ONE / MAX_WEIGHT = 65. */
	return held_a * weight_b * 64 < held_b * weight_a * 62;
}

/* What is held is counted up to some four million for each unit of weight. */
static bool is_countable(uint64_t held, uint64_t weight)
{
	return held * LOAD_UNIT * (COST_ONE / weight) < KEY_LOAD_MAX;
}

Test(policy, load_is_shared_by_weight)
{
	struct settings settings = { .policy = POLICY_LEAST_CONN };
	struct random random = { .state = SEED };
	size_t nr_compared = 0, trial;

	for (trial = 0; trial < NR_TRIALS; trial++) {
		struct policy_candidate a = usual(draw(&random)), b = usual(draw(&random));
		uint32_t weight_a = 1 + draw(&random) % MAX_WEIGHT;
		uint32_t weight_b = 1 + draw(&random) % MAX_WEIGHT;

		if (!is_clearly_less(a.held, weight_a, b.held, weight_b) ||
		    !is_countable(a.held, weight_a))
			continue;
		nr_compared++;
		a.cost = policy_cost(weight_a);
		b.cost = policy_cost(weight_b);
		cr_assert_lt(policy_key(&settings, &a), policy_key(&settings, &b),
			     "%u over %u against %u over %u", a.held, weight_a, b.held, weight_b);
	}
	cr_expect_gt(nr_compared, NR_TRIALS / 10);
}

Test(policy, with_equal_weights_each_connection_counts)
{
	static const uint32_t weights[] = { 1, 2, 3, 7, 10, 100, 999, MAX_WEIGHT };
	struct settings settings = { .policy = POLICY_LEAST_LOADED };
	uint32_t held;
	size_t i;

	for (i = 0; i < COUNT(weights); i++) {
		for (held = 0; held < 4000000; held += 1 + held / 7) {
			struct policy_candidate fewer = usual(held), more = usual(held + 1);

			fewer.cost = policy_cost(weights[i]);
			more.cost = fewer.cost;
			cr_assert_lt(policy_key(&settings, &fewer), policy_key(&settings, &more),
				     "%u at weight %u", held, weights[i]);
		}
	}
}

Test(policy, the_heaviest_load_stays_within_its_class)
{
	struct policy_candidate heavy = usual(UINT32_MAX), light = usual(0);
	struct settings settings = { .busy_penalty = UINT32_MAX };

	heavy.half_open = 1;
	heavy.ahead = UINT64_MAX;
	heavy.state = STATE_BUSY;
	heavy.away_ns = UINT64_MAX;
	light.flags = WORKER_DRAINING;
	for (settings.policy = 0; settings.policy < NR_POLICIES; settings.policy++) {
		cr_expect_eq(policy_load(&settings, &heavy), KEY_LOAD_MAX);
		cr_expect_eq(policy_key_class(policy_key(&settings, &heavy)), CLASS_ELIGIBLE);
		cr_expect_lt(policy_key(&settings, &heavy), policy_key(&settings, &light));
	}
}

Test(policy, being_busy_weighs_once_more_with_each_doubling_and_no_more_than_nine_times)
{
	const struct settings settings = { .busy_penalty = 10 };
	uint64_t away = 1;
	uint32_t times;

	cr_expect_eq(policy_busy_units(&settings, 0), 10);
	cr_expect_eq(policy_busy_units(&settings, (1 << BUSY_UNIT_SHIFT) - 1), 10);
	for (times = 2; times <= 1 + BUSY_DOUBLINGS; times++, away *= 2) {
		cr_expect_eq(policy_busy_units(&settings, away << BUSY_UNIT_SHIFT), 10 * times);
		cr_expect_eq(policy_busy_units(&settings, (2 * away << BUSY_UNIT_SHIFT) - 1),
			     10 * times);
	}
	cr_expect_eq(policy_busy_units(&settings, UINT64_MAX), 10 * (1 + BUSY_DOUBLINGS));
}

Test(policy, the_lightest_worker_of_the_highest_weight_pays_something)
{
	cr_expect_eq(policy_cost(1), COST_ONE);
	cr_expect_gt(policy_cost(MAX_WEIGHT), 0);
	cr_expect_gt(policy_cost(MAX_WEIGHT - 1) * 2, policy_cost(MAX_WEIGHT));
}

/* The slot that wins among equal ones. */
static uint32_t winner(uint32_t seed, uint32_t nr_slots)
{
	uint32_t slot, best = 0;

	for (slot = 1; slot < nr_slots; slot++)
		if (policy_prefers(0, policy_tie(seed, slot), 0, policy_tie(seed, best)))
			best = slot;
	return best;
}

static double chi_square(const size_t *counts, size_t nr, double expected)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < nr; i++)
		sum += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
	return sum;
}

#define NR_TIED 16

Test(policy, equal_candidates_win_equally_often)
{
	static const uint32_t sizes[] = { 2, 3, 10, NR_TIED };
	struct random random = { .state = SEED };
	size_t i, trial;

	for (i = 0; i < COUNT(sizes); i++) {
		size_t counts[NR_TIED] = {};

		for (trial = 0; trial < NR_TRIALS; trial++)
			counts[winner((uint32_t)random_next(&random), sizes[i])]++;
		/* At most 15 degrees of freedom: 45 is exceeded once in ten thousand. */
		cr_expect_lt(chi_square(counts, sizes[i], (double)NR_TRIALS / sizes[i]), 45,
			     "%u slots", sizes[i]);
	}
}

Test(policy, no_two_slots_draw_the_same_tie)
{
	static const uint32_t seeds[] = { 0, 1, UINT32_MAX, SEED };
	uint32_t a, b;
	size_t i;

	for (i = 0; i < COUNT(seeds); i++)
		for (a = 0; a < MAX_SLOTS; a++)
			for (b = 0; b < a; b++)
				cr_assert_neq(policy_tie(seeds[i], a), policy_tie(seeds[i], b));
}

static const struct {
	const char *name;
	uint32_t queued, half_open, backlog;
	bool is_nearly_full;
} queues[] = {
	{ "empty, no backlog", 0, 0, 0, false },
	{ "one queued, no backlog", 1, 0, 0, true },
	{ "one half-open, no backlog", 0, 1, 0, true },
	{ "empty, backlog 1", 0, 0, 1, false },
	{ "one queued, backlog 1", 1, 0, 1, true },
	{ "one below a small backlog", 2, 0, 3, false },
	{ "a small backlog", 3, 0, 3, true },
	{ "a small backlog, half-open", 1, 2, 3, true },
	{ "just below seven eighths", 447, 0, 511, false },
	{ "seven eighths", 448, 0, 511, true },
	{ "seven eighths, half-open", 400, 48, 511, true },
	{ "above the backlog", 600, 0, 511, true },
	{ "the largest of all", UINT32_MAX, UINT32_MAX, UINT32_MAX, true },
	{ "the largest half-open", 0, UINT32_MAX, 511, true },
	{ "empty, largest backlog", 0, 0, UINT32_MAX, false },
	{ "half of the largest backlog", UINT32_MAX / 2, 0, UINT32_MAX, false },
	{ "backlog unknown", 4096, 4096, UINT32_MAX, false },
};

Test(policy, a_queue_is_nearly_full_when_an_eighth_is_left)
{
	size_t i;

	for (i = 0; i < COUNT(queues); i++) {
		struct policy_candidate candidate = usual(0);

		candidate.queued = queues[i].queued;
		candidate.half_open = queues[i].half_open;
		candidate.backlog = queues[i].backlog;
		cr_expect_eq(policy_nearly_full(&candidate), queues[i].is_nearly_full, "%s",
			     queues[i].name);
		cr_expect_eq(policy_class(&candidate),
			     queues[i].is_nearly_full ? CLASS_NEARLY_FULL : CLASS_ELIGIBLE, "%s",
			     queues[i].name);
	}
}

/* Which of two is preferred: 1 the first, 2 the second, 0 neither before the tie. */
static const struct {
	const char *name;
	enum policy policy;
	int preferred;
	struct policy_candidate first, second;
} orders[] = {
	{ "fewer held", POLICY_LEAST_LOADED, 1, { .held = 1 }, { .held = 2 } },
	{ "half-open counts like held",
	  POLICY_LEAST_LOADED,
	  0,
	  { .held = 2, .half_open = 1 },
	  { .held = 1, .half_open = 2 } },
	{ "idle before busy", POLICY_LEAST_LOADED, 1, {}, { .state = STATE_BUSY } },
	{ "unknown counts as idle", POLICY_LEAST_LOADED, 0, { .state = STATE_IDLE }, {} },
	{ "busy weighs less than a connection",
	  POLICY_LEAST_LOADED,
	  1,
	  { .held = 1, .state = STATE_BUSY },
	  { .held = 2 } },
	{ "the shorter queue", POLICY_LEAST_LOADED, 1, { .queued = 1 }, { .queued = 2 } },
	{ "held before the queue",
	  POLICY_LEAST_LOADED,
	  2,
	  { .held = 2 },
	  { .held = 1, .queued = 1 } },
	{ "room before less load", POLICY_LEAST_LOADED, 2, { .queued = 511 }, { .held = 1000 } },
	{ "a full queue before nobody there",
	  POLICY_LEAST_LOADED,
	  1,
	  { .held = 9, .queued = 511 },
	  { .state = STATE_UNATTENDED } },
	{ "a full queue before a stuck worker",
	  POLICY_LEAST_LOADED,
	  1,
	  { .held = 9, .queued = 511 },
	  { .is_stuck = 1 } },
	{ "stuck counts under each policy",
	  POLICY_ROUND_ROBIN,
	  2,
	  { .is_stuck = 1 },
	  { .ahead = 1000 } },
	{ "stuck before draining",
	  POLICY_LEAST_CONN,
	  1,
	  { .held = 9, .is_stuck = 1 },
	  { .flags = WORKER_DRAINING } },
	{ "of two stuck ones that with less load",
	  POLICY_LEAST_LOADED,
	  1,
	  { .held = 1, .is_stuck = 1 },
	  { .held = 2, .is_stuck = 1 } },
	{ "several quiet ones before one that computes for long",
	  POLICY_LEAST_LOADED,
	  2,
	  { .held = 1, .state = STATE_BUSY, .away_ns = 2200000000 },
	  { .held = 5 } },
	{ "busy for a moment weighs less than a connection",
	  POLICY_LEAST_LOADED,
	  1,
	  { .held = 1, .state = STATE_BUSY, .away_ns = 1000000 },
	  { .held = 2 } },
	{ "away counts only while it is busy",
	  POLICY_LEAST_LOADED,
	  0,
	  { .held = 1, .away_ns = 2200000000 },
	  { .held = 1 } },
	{ "nobody there before draining",
	  POLICY_LEAST_LOADED,
	  1,
	  { .held = 9, .state = STATE_UNATTENDED },
	  { .flags = WORKER_DRAINING } },
	{ "twice the weight, twice as many",
	  POLICY_LEAST_LOADED,
	  0,
	  { .held = 6, .cost = COST_ONE / 2 },
	  { .held = 3 } },
	{ "two choices compare alike", POLICY_P2C, 1, { .held = 1 }, { .held = 2 } },
	{ "half-open does not count", POLICY_LEAST_CONN, 0, { .half_open = 5 }, {} },
	{ "held only", POLICY_LEAST_CONN, 1, { .held = 1, .half_open = 9 }, { .held = 2 } },
	{ "idle before busy among equals", POLICY_LEAST_CONN, 1, {}, { .state = STATE_BUSY } },
	{ "busy weighs nothing",
	  POLICY_LEAST_CONN,
	  1,
	  { .held = 1, .state = STATE_BUSY },
	  { .held = 2 } },
	{ "whose turn is earlier",
	  POLICY_ROUND_ROBIN,
	  1,
	  { .held = 9, .ahead = 1 },
	  { .ahead = 2 } },
	{ "busy or not", POLICY_ROUND_ROBIN, 0, { .state = STATE_BUSY }, {} },
	{ "long queue or short", POLICY_ROUND_ROBIN, 0, { .queued = 5 }, {} },
	{ "no turn while draining",
	  POLICY_ROUND_ROBIN,
	  2,
	  { .flags = WORKER_DRAINING },
	  { .ahead = 1000 } },
};

/* What the table does not say: room in the queue, and weight 1. */
static struct policy_candidate completed(struct policy_candidate candidate)
{
	candidate.backlog = 511;
	if (!candidate.cost)
		candidate.cost = policy_cost(DEFAULT_WEIGHT);
	return candidate;
}

Test(policy, each_policy_has_its_order)
{
	size_t i;

	for (i = 0; i < COUNT(orders); i++) {
		struct settings settings = { .policy = orders[i].policy,
					     .busy_penalty = DEFAULT_BUSY_PENALTY };
		struct policy_candidate a = completed(orders[i].first);
		struct policy_candidate b = completed(orders[i].second);
		uint64_t key_a = policy_key(&settings, &a), key_b = policy_key(&settings, &b);
		int preferred = key_a == key_b ? 0 : key_a < key_b ? 1 : 2;

		cr_expect_eq(preferred, orders[i].preferred, "%s", orders[i].name);
	}
}

Test(policy, the_floor_is_never_above_the_key)
{
	struct random random = { .state = SEED };
	size_t trial;

	for (trial = 0; trial < NR_TRIALS; trial++) {
		struct settings settings = settings_draw(&random);
		struct policy_candidate candidate = candidate_draw(&random);

		cr_assert_leq(policy_key_floor(&settings, &candidate),
			      policy_key(&settings, &candidate), "trial %zu", trial);
	}
}

Test(policy, a_step_is_what_one_more_connection_adds)
{
	struct settings settings = { .policy = POLICY_LEAST_LOADED };
	struct random random = { .state = SEED };
	size_t trial;

	for (trial = 0; trial < NR_TRIALS; trial++) {
		uint32_t weight = 1 + draw(&random) % MAX_WEIGHT;
		struct policy_candidate before = usual(random_below(&random, 1000000));
		struct policy_candidate after;

		before.cost = policy_cost(weight);
		after = before;
		after.held++;
		cr_assert_eq(policy_load(&settings, &before) + policy_step(&settings, before.cost),
			     policy_load(&settings, &after), "%u at weight %u", before.held,
			     weight);
	}
	settings.policy = POLICY_ROUND_ROBIN;
	cr_expect_eq(policy_step(&settings, policy_cost(1)), STRIDE);
	cr_expect_eq(policy_step(&settings, policy_cost(4)), STRIDE / 4);
}

Test(policy, ranks_keep_class_and_load_and_saturate)
{
	struct random random = { .state = SEED };
	size_t trial;

	for (trial = 0; trial < NR_TRIALS; trial++) {
		struct settings settings = settings_draw(&random);
		struct policy_candidate candidate = candidate_draw(&random);
		uint64_t load = policy_load(&settings, &candidate);
		uint32_t rank = policy_rank(policy_class(&candidate), load);

		cr_assert_lt(rank, RANK_NONE, "trial %zu", trial);
		cr_assert_eq(policy_rank_class(rank), policy_class(&candidate), "trial %zu", trial);
		cr_assert_leq(policy_rank_load(rank), load, "trial %zu", trial);
	}
	cr_expect_eq(policy_rank(CLASS_ELIGIBLE, UINT64_MAX), RANK_LOAD_MAX);
	cr_expect_lt(policy_rank(CLASS_DRAINING, UINT64_MAX), RANK_NONE);
}

Test(policy, ranks_are_in_the_order_of_their_keys)
{
	struct random random = { .state = SEED };
	size_t trial;

	for (trial = 0; trial < NR_TRIALS; trial++) {
		struct settings settings = settings_draw(&random);
		struct policy_candidate a = candidate_draw(&random), b = candidate_draw(&random);
		uint32_t rank_a = policy_rank(policy_class(&a), policy_load(&settings, &a));
		uint32_t rank_b = policy_rank(policy_class(&b), policy_load(&settings, &b));

		if (rank_a < rank_b)
			cr_assert_lt(policy_key(&settings, &a), policy_key(&settings, &b),
				     "trial %zu", trial);
	}
}

Test(policy, a_new_listener_weighs_more_the_younger_it_is)
{
	const uint64_t second = 1000000000;
	uint32_t cost = policy_cost(1), last = UINT32_MAX;
	uint64_t age;

	for (age = 0; age < second; age += second / 100) {
		uint32_t now = policy_ramp(cost, age, second);

		cr_expect(now <= last && now >= cost, "age %lu", (unsigned long)age);
		last = now;
	}
	cr_expect_eq(policy_ramp(cost, 0, second), cost * RAMP_MAX);
	cr_expect_eq(policy_ramp(cost, second / 2, second), 2 * cost);
	cr_expect_eq(policy_ramp(cost, second / 10, second), 10 * cost);
	cr_expect_eq(policy_ramp(cost, second, second), cost);
	cr_expect_eq(policy_ramp(cost, 0, 0), cost);
	/* The longest that can be set does not overflow. */
	cr_expect_eq(policy_ramp(cost, 300 * second, 600 * second), 2 * cost);
}
