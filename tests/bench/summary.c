/* SPDX-License-Identifier: GPL-2.0-only */
#include "summary.h"

#include <stdlib.h>

#define NSEC_PER_MSEC 1e6

static int compare_durations(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left;
	uint64_t b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

static double percentile_ms(const uint64_t *sorted_ns, size_t nr, size_t permille)
{
	size_t rank = (nr * permille + 999) / 1000;

	return (double)sorted_ns[rank ? rank - 1 : 0] / NSEC_PER_MSEC;
}

struct summary summary_of(uint64_t *durations_ns, size_t nr)
{
	double sum_ns = 0;

	if (!nr)
		return (struct summary){ 0 };
	qsort(durations_ns, nr, sizeof(*durations_ns), compare_durations);
	for (size_t i = 0; i < nr; i++)
		sum_ns += (double)durations_ns[i];
	return (struct summary){
		.mean_ms = sum_ns / (double)nr / NSEC_PER_MSEC,
		.p50_ms = percentile_ms(durations_ns, nr, 500),
		.p90_ms = percentile_ms(durations_ns, nr, 900),
		.p99_ms = percentile_ms(durations_ns, nr, 990),
		.p999_ms = percentile_ms(durations_ns, nr, 999),
		.max_ms = percentile_ms(durations_ns, nr, 1000),
	};
}
