/* SPDX-License-Identifier: GPL-2.0-only */
#include "daemon/churn.h"

#include <criterion/criterion.h>

#define MS 1000000ULL
#define SECOND (1000 * MS)

/* An uptime, so that nothing depends on a clock that begins with zero. */
#define START (5000 * SECOND)

/* Changes without end, each look as soon as it may be. */
static uint64_t spend_under_churn(uint64_t look_ns, uint64_t duration_ns, uint64_t *ret_longest_ns)
{
	uint64_t now_ns = START, spent_ns = 0;
	struct churn churn;

	churn_init(&churn, now_ns);
	*ret_longest_ns = 0;
	while (now_ns < START + duration_ns) {
		uint64_t delay_ns = churn_delay_ns(&churn, now_ns);

		if (delay_ns > *ret_longest_ns)
			*ret_longest_ns = delay_ns;
		now_ns += delay_ns + MS;
		churn_spend(&churn, now_ns + look_ns, look_ns);
		now_ns += look_ns;
		spent_ns += look_ns;
	}
	return spent_ns;
}

Test(churn, looks_without_end_take_their_share_of_a_cpu_and_the_capacity_once)
{
	static const uint64_t looks_ns[] = { MS / 10, MS, 5 * MS, 20 * MS, 90 * MS };

	for (size_t i = 0; i < sizeof(looks_ns) / sizeof(looks_ns[0]); i++) {
		uint64_t duration_ns = 100 * SECOND, longest_ns;
		uint64_t most_ns = duration_ns * CHURN_SHARE_PERMILLE / 1000 + CHURN_CAPACITY_NS;
		uint64_t spent_ns = spend_under_churn(looks_ns[i], duration_ns, &longest_ns);

		/* The last look and the wait before it may be beyond the duration. */
		cr_expect_leq(spent_ns, most_ns + 2 * looks_ns[i]);
		/* The tenth of a millisecond never reaches the limit, at one look a millisecond. */
		if (i)
			cr_expect_geq(spent_ns, most_ns * 9 / 10, "%lu of %lu", spent_ns, most_ns);
		cr_expect_leq(longest_ns, looks_ns[i] * 1000 / CHURN_SHARE_PERMILLE);
	}
}

Test(churn, no_look_waits_longer_than_the_longest_delay)
{
	uint64_t longest_ns;

	spend_under_churn(3 * SECOND, 60 * SECOND, &longest_ns);
	cr_expect_eq(longest_ns, CHURN_DELAY_MAX_NS);
}

Test(churn, restarts_never_wait)
{
	uint64_t now_ns = START;
	struct churn churn;

	churn_init(&churn, now_ns);
	/* Sixteen workers at once, two changes and a look for each, and one look more. */
	for (size_t i = 0; i < 33; i++) {
		cr_expect_eq(churn_delay_ns(&churn, now_ns), 0, "look %zu", i);
		now_ns += 6 * MS;
		churn_spend(&churn, now_ns, 6 * MS);
	}
	/* One worker in a second, three looks each. */
	for (size_t i = 0; i < 3600; i++) {
		now_ns += SECOND;
		for (size_t j = 0; j < 3; j++) {
			cr_expect_eq(churn_delay_ns(&churn, now_ns), 0, "restart %zu", i);
			churn_spend(&churn, now_ns, 20 * MS);
		}
	}
}

Test(churn, the_allowance_comes_back_with_quiet_and_not_beyond_its_capacity)
{
	struct churn churn;
	uint64_t now_ns = START;

	churn_init(&churn, now_ns);
	churn_spend(&churn, now_ns, CHURN_CAPACITY_NS);
	cr_expect_eq(churn_delay_ns(&churn, now_ns), 0);
	churn_spend(&churn, now_ns, 10 * MS);
	cr_expect_eq(churn_delay_ns(&churn, now_ns), 100 * MS);
	cr_expect_eq(churn_delay_ns(&churn, now_ns + 99 * MS), 1 * MS);
	cr_expect_eq(churn_delay_ns(&churn, now_ns + 100 * MS), 0);
	/* A clock that stands still or goes back earns nothing. */
	cr_expect_eq(churn_delay_ns(&churn, now_ns), 0);
	now_ns += 1000000 * SECOND;
	churn_spend(&churn, now_ns, CHURN_CAPACITY_NS + 10 * MS);
	cr_expect_eq(churn_delay_ns(&churn, now_ns), 100 * MS);
}

Test(churn, that_the_limit_bites_is_told_once_until_it_was_quiet)
{
	struct churn churn;
	uint64_t now_ns = START;

	churn_init(&churn, now_ns);
	cr_expect_not(churn_begins_to_bite(&churn, now_ns));
	churn_spend(&churn, now_ns, CHURN_CAPACITY_NS + MS);
	cr_expect(churn_begins_to_bite(&churn, now_ns));
	cr_expect_not(churn_begins_to_bite(&churn, now_ns));
	/* Paid back, but not quiet. */
	now_ns += SECOND;
	churn_spend(&churn, now_ns, CHURN_CAPACITY_NS);
	cr_expect_not(churn_begins_to_bite(&churn, now_ns));
	now_ns += 60 * SECOND;
	cr_expect_eq(churn_delay_ns(&churn, now_ns), 0);
	churn_spend(&churn, now_ns, CHURN_CAPACITY_NS + MS);
	cr_expect(churn_begins_to_bite(&churn, now_ns));
}

Test(churn, the_port_of_most_changes_is_named)
{
	const struct event quiet = { .port = 80, .netns = 1 }, busy = { .port = 81, .netns = 2 };
	struct churn churn;

	churn_init(&churn, START);
	for (size_t i = 0; i < 100; i++) {
		churn_count(&churn, i % 3 ? &busy : &quiet);
		churn_count(&churn, i % 2 ? &busy : &quiet);
	}
	cr_expect_eq(churn.port, 81);
	cr_expect_eq(churn.netns, 2);
}
