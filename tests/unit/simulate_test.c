/* SPDX-License-Identifier: GPL-2.0-only */
#include "simulate.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ARRIVALS_IN_A_CASE 8
#define SCANNED_WORKERS_MAX 17

struct simulate_case {
	const char *name;
	unsigned int nr_workers;
	size_t nr;
	struct arrival arrivals[ARRIVALS_IN_A_CASE];
	uint64_t latencies_ns[ARRIVALS_IN_A_CASE];
};

/* Worked out by hand. */
static const struct simulate_case cases[] = {
	{ "nobody", 1, 0, { { 0 } }, { 0 } },
	{ "one alone", 1, 1, { { 5, 7, 0 } }, { 7 } },
	{ "one worker, a queue that grows and empties",
	  1,
	  5,
	  { { 0, 10, 0 }, { 1, 10, 0 }, { 2, 1, 0 }, { 21, 4, 0 }, { 100, 3, 0 } },
	  { 10, 19, 19, 4, 3 } },
	{ "one worker, arrival at the instant of a departure",
	  1,
	  2,
	  { { 0, 10, 0 }, { 10, 10, 0 } },
	  { 10, 10 } },
	{ "two workers, the third waits for the first to be free",
	  2,
	  3,
	  { { 0, 10, 0 }, { 0, 4, 0 }, { 1, 2, 0 } },
	  { 10, 4, 5 } },
	{ "two workers, a long request blocks only one",
	  2,
	  5,
	  { { 0, 100, 0 }, { 1, 1, 0 }, { 2, 1, 0 }, { 3, 1, 0 }, { 4, 1, 0 } },
	  { 100, 1, 1, 1, 1 } },
	{ "three workers, six at once",
	  3,
	  6,
	  { { 0, 3, 0 }, { 0, 2, 0 }, { 0, 1, 0 }, { 0, 3, 0 }, { 0, 2, 0 }, { 0, 1, 0 } },
	  { 3, 2, 1, 4, 4, 4 } },
	{ "nothing to do", 1, 2, { { 3, 0, 0 }, { 3, 0, 0 } }, { 0, 0 } },
};

Test(simulate, hand_computed_cases_agree)
{
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint64_t latencies_ns[ARRIVALS_IN_A_CASE];

		cr_assert_eq(simulate_central_queue(cases[i].arrivals, cases[i].nr,
						    cases[i].nr_workers, latencies_ns),
			     0);
		for (size_t n = 0; n < cases[i].nr; n++)
			cr_expect_eq(latencies_ns[n], cases[i].latencies_ns[n],
				     "%s: request %zu took %lu", cases[i].name, n, latencies_ns[n]);
	}
}

/* A random load, the same in every run of the tests. */
static int random_arrivals(double rate, struct arrivals *ret_arrivals)
{
	struct mix mix;
	int err = mix_parse("sleep:1:95,sleep:20:5", &mix);

	return err ? err : arrivals_init(ret_arrivals, &mix, rate, 10, 7);
}

/* NULL when anything fails. */
static uint64_t *simulate(const struct arrivals *arrivals, unsigned int nr_workers)
{
	uint64_t *latencies_ns = calloc(arrivals->nr, sizeof(*latencies_ns));

	if (latencies_ns &&
	    simulate_central_queue(arrivals->items, arrivals->nr, nr_workers, latencies_ns)) {
		free(latencies_ns);
		return NULL;
	}
	return latencies_ns;
}

Test(simulate, one_worker_obeys_lindleys_recursion)
{
	struct arrivals arrivals;
	uint64_t *latencies_ns;
	uint64_t last_departure_ns = 0;

	cr_assert_eq(random_arrivals(400, &arrivals), 0);
	latencies_ns = simulate(&arrivals, 1);
	cr_assert_not_null(latencies_ns);
	for (size_t i = 0; i < arrivals.nr; i++) {
		const struct arrival *arrival = &arrivals.items[i];
		uint64_t start_ns = arrival->at_ns > last_departure_ns ? arrival->at_ns :
									 last_departure_ns;

		last_departure_ns = start_ns + arrival->demand_ns;
		cr_assert_eq(latencies_ns[i], last_departure_ns - arrival->at_ns, "request %zu", i);
	}
	free(latencies_ns);
	arrivals_done(&arrivals);
}

Test(simulate, with_a_worker_for_each_request_nobody_waits)
{
	struct arrivals arrivals;
	uint64_t *latencies_ns;

	cr_assert_eq(random_arrivals(400, &arrivals), 0);
	latencies_ns = simulate(&arrivals, (unsigned int)arrivals.nr);
	cr_assert_not_null(latencies_ns);
	for (size_t i = 0; i < arrivals.nr; i++)
		cr_assert_eq(latencies_ns[i], arrivals.items[i].demand_ns, "request %zu", i);
	free(latencies_ns);
	arrivals_done(&arrivals);
}

/* Slow and obvious: looks at every worker for every request. */
static void simulate_by_scan(const struct arrivals *arrivals, unsigned int nr_workers,
			     uint64_t *ret_latencies_ns)
{
	uint64_t free_from_ns[SCANNED_WORKERS_MAX] = { 0 };

	for (size_t i = 0; i < arrivals->nr; i++) {
		const struct arrival *arrival = &arrivals->items[i];
		unsigned int first = 0;

		for (unsigned int worker = 1; worker < nr_workers; worker++) {
			if (free_from_ns[worker] < free_from_ns[first])
				first = worker;
		}
		if (free_from_ns[first] < arrival->at_ns)
			free_from_ns[first] = arrival->at_ns;
		free_from_ns[first] += arrival->demand_ns;
		ret_latencies_ns[i] = free_from_ns[first] - arrival->at_ns;
	}
}

Test(simulate, the_heap_agrees_with_a_scan_of_all_workers)
{
	struct arrivals arrivals;
	uint64_t *expected_ns;

	cr_assert_eq(random_arrivals(4000, &arrivals), 0);
	expected_ns = calloc(arrivals.nr, sizeof(*expected_ns));
	cr_assert_not_null(expected_ns);
	for (unsigned int nr_workers = 1; nr_workers <= SCANNED_WORKERS_MAX; nr_workers++) {
		uint64_t *latencies_ns = simulate(&arrivals, nr_workers);

		cr_assert_not_null(latencies_ns);
		simulate_by_scan(&arrivals, nr_workers, expected_ns);
		for (size_t i = 0; i < arrivals.nr; i++)
			cr_assert_eq(latencies_ns[i], expected_ns[i], "%u workers, request %zu",
				     nr_workers, i);
		free(latencies_ns);
	}
	free(expected_ns);
	arrivals_done(&arrivals);
}

Test(simulate, one_more_worker_never_makes_a_request_slower)
{
	struct arrivals arrivals;
	uint64_t *before_ns;

	cr_assert_eq(random_arrivals(3000, &arrivals), 0);
	before_ns = simulate(&arrivals, 4);
	cr_assert_not_null(before_ns);
	for (unsigned int nr_workers = 5; nr_workers <= 16; nr_workers++) {
		uint64_t *after_ns = simulate(&arrivals, nr_workers);

		cr_assert_not_null(after_ns);
		for (size_t i = 0; i < arrivals.nr; i++)
			cr_assert_leq(after_ns[i], before_ns[i], "%u workers, request %zu",
				      nr_workers, i);
		free(before_ns);
		before_ns = after_ns;
	}
	free(before_ns);
	arrivals_done(&arrivals);
}

Test(simulate, a_server_without_workers_is_refused)
{
	struct arrival arrival = { 0, 1, 0 };
	uint64_t latency_ns = 42;

	cr_expect_eq(simulate_central_queue(&arrival, 1, 0, &latency_ns), -EINVAL);
	cr_expect_eq(latency_ns, 42);
}
