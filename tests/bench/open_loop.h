/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * open_loop: sends the planned arrivals, each at its instant whether or not earlier ones have
 * been answered, and notes how each of them ended. SIGTERM ends the arrivals early.
 */
#ifndef BENCH_OPEN_LOOP_H
#define BENCH_OPEN_LOOP_H

#include "arrivals.h"
#include "load_options.h"
#include "tally.h"

struct open_loop_result {
	uint64_t *latencies_ns; /* From the planned instant to the full answer. */
	size_t nr_latencies;
	uint64_t *lags_ns; /* How late each arrival was sent: the generator's own error. */
	size_t nr_lags;
	struct tally tally;
};

/* -ENOMEM, or what epoll or the log file reports. Undone by open_loop_result_done(), on failure too. */
int open_loop_run(const struct load_options *options, const struct arrivals *arrivals,
		  struct open_loop_result *result);
void open_loop_result_done(struct open_loop_result *result);

#endif
