/* SPDX-License-Identifier: GPL-2.0-only */
#include "answer.h"
#include "arrivals.h"
#include "random.h"
#include "summary.h"
#include "tally.h"
#include "target.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

Test(random, exponential_numbers_have_mean_and_variance_one)
{
	struct random random = { .state = 1 };
	const int nr = 1000000;
	double sum = 0, sum_of_squares = 0;

	for (int i = 0; i < nr; i++) {
		double number = random_exponential(&random);

		cr_assert_geq(number, 0);
		sum += number;
		sum_of_squares += number * number;
	}
	/* Five standard errors of the mean, and of the second moment. */
	cr_expect(sum / nr > 0.995 && sum / nr < 1.005, "mean %f", sum / nr);
	cr_expect(sum_of_squares / nr > 1.977 && sum_of_squares / nr < 2.023, "second moment %f",
		  sum_of_squares / nr);
}

Test(mix, parts_have_their_request_demand_and_weight)
{
	struct mix mix;

	cr_assert_eq(mix_parse("sleep:1.5:95,spin:20:4,answer:0:1", &mix), 0);
	cr_assert_eq(mix.nr_parts, 3);
	cr_expect_eq(mix.weight_sum, 100);
	cr_expect_eq(mix.parts[0].demand_ns, 1500000);
	cr_expect_str_eq(mix.parts[0].request, "GET /sleep/1.500000 HTTP/1.1\r\nHost: load\r\n"
					       "Connection: close\r\n\r\n");
	cr_expect_str_eq(mix.parts[1].request, "GET /spin/20.000000 HTTP/1.1\r\nHost: load\r\n"
					       "Connection: close\r\n\r\n");
	cr_expect_str_eq(mix.parts[2].request,
			 "GET / HTTP/1.1\r\nHost: load\r\nConnection: close\r\n\r\n");
	cr_expect_float_eq(mix_mean_demand_ns(&mix), 1.5e6 * 0.95 + 20e6 * 0.04, 1e-3);
}

Test(mix, a_ticket_picks_the_part_that_it_falls_into)
{
	static const unsigned int expected[] = { 0, 0, 1, 2, 2, 2 };
	struct mix mix;

	cr_assert_eq(mix_parse("sleep:1:2,sleep:2:1,sleep:3:3", &mix), 0);
	for (uint64_t ticket = 0; ticket < COUNT(expected); ticket++)
		cr_expect_eq(mix_pick(&mix, ticket), expected[ticket], "ticket %lu", ticket);
}

Test(mix, nonsense_is_refused)
{
	static const char *const texts[] = {
		"",
		"sleep",
		"sleep:1",
		"sleep:1:0",
		"sleep:-1:1",
		"sleep:nan:1",
		"sleep:1e9:1",
		"walk:1:1",
		"sleep:1:1,",
		",sleep:1:1",
		"sleep:1:1x",
		"answer:1:1",
		"sleep:1:1;x:1:1",
		"sleep:1:-1",
	};

	for (size_t i = 0; i < COUNT(texts); i++) {
		struct mix mix = { .nr_parts = 42 };

		cr_expect_eq(mix_parse(texts[i], &mix), -EINVAL, "%s", texts[i]);
		cr_expect_eq(mix.nr_parts, 42, "%s", texts[i]);
	}
}

/* A mix of @nr equal parts, as text. */
static void format_mix(unsigned int nr, char *ret_text, size_t nr_bytes)
{
	size_t length = 0;

	for (unsigned int i = 0; i < nr; i++)
		length += (size_t)snprintf(ret_text + length, nr_bytes - length, "%ssleep:1:1",
					   i ? "," : "");
}

Test(mix, more_parts_than_there_is_room_for_are_refused)
{
	char text[MIX_PARTS_MAX * 12];
	struct mix mix;

	format_mix(MIX_PARTS_MAX, text, sizeof(text));
	cr_expect_eq(mix_parse(text, &mix), 0);
	format_mix(MIX_PARTS_MAX + 1, text, sizeof(text));
	cr_expect_eq(mix_parse(text, &mix), -E2BIG);
}

/* 1000 a second for 20 seconds. */
static int arrivals_of_seed(uint64_t seed, struct arrivals *ret_arrivals)
{
	struct mix mix;
	int err = mix_parse("sleep:1:95,sleep:20:5", &mix);

	return err ? err : arrivals_init(ret_arrivals, &mix, 1000, 20, seed);
}

Test(arrivals, the_same_seed_gives_the_same_load_and_another_does_not)
{
	struct arrivals first, again, other;

	cr_assert_eq(arrivals_of_seed(5, &first), 0);
	cr_assert_eq(arrivals_of_seed(5, &again), 0);
	cr_assert_eq(arrivals_of_seed(6, &other), 0);
	cr_assert_eq(first.nr, again.nr);
	for (size_t i = 0; i < first.nr; i++) {
		cr_assert_eq(first.items[i].at_ns, again.items[i].at_ns);
		cr_assert_eq(first.items[i].demand_ns, again.items[i].demand_ns);
	}
	cr_expect_neq(first.items[0].at_ns, other.items[0].at_ns);
	arrivals_done(&first);
	arrivals_done(&again);
	arrivals_done(&other);
}

Test(arrivals, they_are_in_order_within_the_run_and_as_many_and_as_mixed_as_asked_for)
{
	struct arrivals arrivals;
	size_t nr_long = 0;

	cr_assert_eq(arrivals_of_seed(5, &arrivals), 0);
	/* Five standard deviations of a Poisson number with mean 20000. */
	cr_expect(arrivals.nr > 19292 && arrivals.nr < 20708, "%zu arrivals", arrivals.nr);
	for (size_t i = 0; i < arrivals.nr; i++) {
		cr_assert_lt(arrivals.items[i].at_ns, 20000000000);
		if (i)
			cr_assert_geq(arrivals.items[i].at_ns, arrivals.items[i - 1].at_ns);
		nr_long += arrivals.items[i].demand_ns == 20000000;
	}
	cr_expect(nr_long > 840 && nr_long < 1160, "%zu long requests", nr_long);
	arrivals_done(&arrivals);
}

Test(arrivals, more_than_memory_should_hold_are_refused)
{
	struct arrivals arrivals;
	struct mix mix;

	cr_assert_eq(mix_parse("answer:0:1", &mix), 0);
	cr_expect_eq(arrivals_init(&arrivals, &mix, ARRIVALS_MAX, 2, 1), -E2BIG);
}

Test(summary, percentiles_are_nearest_ranks)
{
	uint64_t durations_ns[1000];
	struct summary summary;

	/* 1 ms to 1000 ms, from the longest to the shortest. */
	for (size_t i = 0; i < 1000; i++)
		durations_ns[i] = (1000 - i) * 1000000;
	summary = summary_of(durations_ns, 1000);
	cr_expect_float_eq(summary.mean_ms, 500.5, 1e-9);
	cr_expect_float_eq(summary.p50_ms, 500, 1e-9);
	cr_expect_float_eq(summary.p90_ms, 900, 1e-9);
	cr_expect_float_eq(summary.p99_ms, 990, 1e-9);
	cr_expect_float_eq(summary.p999_ms, 999, 1e-9);
	cr_expect_float_eq(summary.max_ms, 1000, 1e-9);
}

Test(summary, one_duration_is_all_figures_and_none_is_zero)
{
	uint64_t duration_ns = 2500000;
	struct summary one = summary_of(&duration_ns, 1);
	struct summary none = summary_of(NULL, 0);

	cr_expect_float_eq(one.mean_ms, 2.5, 1e-9);
	cr_expect_float_eq(one.p50_ms, 2.5, 1e-9);
	cr_expect_float_eq(one.max_ms, 2.5, 1e-9);
	cr_expect_float_eq(none.mean_ms, 0, 1e-9);
	cr_expect_float_eq(none.max_ms, 0, 1e-9);
}

Test(answer, a_whole_answer_names_its_worker)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
				   "Content-Length: 18\r\nConnection: close\r\n\r\n"
				   "worker 3 pid 1234\n";
	struct answer_facts facts;

	for (size_t nr = 0; nr < sizeof(text) - 1; nr++) {
		char part[sizeof(text)] = "";

		memcpy(part, text, nr);
		cr_assert_eq(answer_parse(part, nr, &facts), 0, "%zu bytes", nr);
	}
	cr_assert_eq(answer_parse(text, sizeof(text) - 1, &facts), (ssize_t)sizeof(text) - 1);
	cr_expect_eq(facts.status, 200);
	cr_expect_eq(facts.worker, 3);
	cr_expect_eq(facts.pid, 1234);
}

Test(answer, what_is_no_answer_is_refused)
{
	static const char *const texts[] = {
		"SSH-2.0\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\nContent-Length: 2\r\n\r\n",
	};
	struct answer_facts facts;

	for (size_t i = 0; i < COUNT(texts); i++)
		cr_expect_eq(answer_parse(texts[i], strlen(texts[i]), &facts), -EBADMSG, "%s",
			     texts[i]);
}

Test(tally, answers_are_counted_by_worker_and_errors_by_kind)
{
	struct tally *tally = calloc(1, sizeof(*tally));

	cr_assert_not_null(tally);
	tally_answer(tally, 1, 200);
	tally_answer(tally, 0, 100);
	tally_answer(tally, 1, 200);
	tally_answer(tally, 1, 201); /* Worker 1 was replaced. */
	tally_error(tally, -ECONNREFUSED);
	tally_error(tally, -ECONNRESET);
	tally_error(tally, -EPIPE);
	tally_error(tally, -ETIMEDOUT);
	tally_error(tally, -EMFILE);
	cr_expect_eq(tally->nr_ok, 4);
	cr_expect_eq(tally->nr_refused, 1);
	cr_expect_eq(tally->nr_reset, 2);
	cr_expect_eq(tally->nr_timeouts, 1);
	cr_expect_eq(tally->nr_other, 1);
	cr_expect_eq(tally_nr_errors(tally), 5);
	cr_assert_eq(tally_sort_workers(tally), 3);
	cr_expect(tally->workers[0].pid == 100 && tally->workers[0].nr_answers == 1);
	cr_expect(tally->workers[1].pid == 200 && tally->workers[1].nr_answers == 2);
	cr_expect(tally->workers[2].pid == 201 && tally->workers[2].nr_answers == 1);
	free(tally);
}

struct target_case {
	const char *text;
	int err;
	bool is_loopback_v4;
};

Test(target, addresses_are_told_from_nonsense)
{
	static const struct target_case cases[] = {
		{ "127.0.0.1:80", 0, true },
		{ "127.9.9.9:80", 0, true },
		{ "10.0.0.1:80", 0, false },
		{ "[::1]:80", 0, false },
		{ "::1:80", -EINVAL, false },
		{ "127.0.0.1", -EINVAL, false },
		{ ":80", -EINVAL, false },
		{ "[]:80", -EINVAL, false },
		{ "localhost:80", -EINVAL, false },
		{ "127.0.0.1:http", -EINVAL, false },
		{ "", -EINVAL, false },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct target target;
		int err = target_parse(cases[i].text, &target);

		cr_assert_eq(err, cases[i].err, "%s: %d", cases[i].text, err);
		if (!err)
			cr_expect_eq(target_is_loopback_v4(&target), cases[i].is_loopback_v4, "%s",
				     cases[i].text);
	}
}
