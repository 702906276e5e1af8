/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * arrivals: the load of a run, decided before the run begins. Each arrival has its instant and
 * what it demands, so the same list can be sent to a server and fed to the simulator. Pure.
 */
#ifndef BENCH_ARRIVALS_H
#define BENCH_ARRIVALS_H

#include "mix.h"

/* 100,000 a second for 100 seconds. */
#define ARRIVALS_MAX 10000000

struct arrival {
	uint64_t at_ns; /* Since the start of the run, never falling. */
	uint64_t demand_ns; /* How long it occupies a worker. */
	unsigned int part; /* Of the mix. */
};

struct arrivals {
	struct arrival *items;
	size_t nr;
};

/*
 * A Poisson process of @rate arrivals a second for @seconds: users who do not know of each other.
 * -ENOMEM, or -E2BIG when there would be more than ARRIVALS_MAX. Undone by arrivals_done().
 */
int arrivals_init(struct arrivals *arrivals, const struct mix *mix, double rate, double seconds,
		  uint64_t seed);
void arrivals_done(struct arrivals *arrivals);

#endif
