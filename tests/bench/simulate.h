/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * simulate: what the best possible server would have done with the same arrivals. It has one
 * queue for all workers: whoever is free takes the request that came first, so no worker is ever
 * idle while a request waits. No way to spread connections over separate queues, without knowing
 * the future, does better. Pure.
 */
#ifndef BENCH_SIMULATE_H
#define BENCH_SIMULATE_H

#include "arrivals.h"

/*
 * Writes for each of @nr arrivals, which are in order of their instants, how long it takes from
 * its arrival to its answer. -EINVAL without workers, -ENOMEM.
 */
int simulate_central_queue(const struct arrival *arrivals, size_t nr, unsigned int nr_workers,
			   uint64_t *ret_latencies_ns);

#endif
