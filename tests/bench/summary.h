/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * summary: the figures that describe many durations. Exact: sorts what it is given instead of
 * counting into buckets, because a run has few enough of them. Pure.
 */
#ifndef BENCH_SUMMARY_H
#define BENCH_SUMMARY_H

#include <stddef.h>
#include <stdint.h>

struct summary {
	double mean_ms;
	double p50_ms;
	double p90_ms;
	double p99_ms;
	double p999_ms;
	double max_ms;
};

/*
 * Sorts @durations_ns. A percentile is the smallest duration that at least that share of all does
 * not exceed (nearest rank). All zero when there are none.
 */
struct summary summary_of(uint64_t *durations_ns, size_t nr);

#endif
