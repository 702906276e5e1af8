/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * random: a seeded generator. The same seed gives the same numbers on every machine and with
 * every C library, so that two runs can be given exactly the same load. Not for secrets.
 */
#ifndef BENCH_RANDOM_H
#define BENCH_RANDOM_H

#include <stdint.h>

struct random {
	uint64_t state;
};

/* SplitMix64 (Steele, Lea, Flood 2014): passes BigCrush, and any seed is a good one. */
static inline uint64_t random_next(struct random *random)
{
	uint64_t mixed = random->state += 0x9e3779b97f4a7c15ULL;

	mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
	return mixed ^ (mixed >> 31);
}

/* At least 0 and below 1, with all 53 bits that a double can hold. */
static inline double random_fraction(struct random *random)
{
	return (double)(random_next(random) >> 11) * 0x1.0p-53;
}

/* Below @limit. The bias of at most limit / 2^64 is far below what any run could show. */
static inline uint64_t random_below(struct random *random, uint64_t limit)
{
	return random_next(random) % limit;
}

/*
 * Exponentially distributed with mean 1, by von Neumann's comparison method (1951). It needs no
 * logarithm, whose last bit differs between C libraries. The loop ends after e / (1 - 1/e), about
 * 4.3, draws on average.
 */
static inline double random_exponential(struct random *random)
{
	for (double whole = 0;; whole += 1) {
		double first = random_fraction(random);
		double last = first;
		unsigned int nr_falling = 1;

		for (;;) {
			double next = random_fraction(random);

			if (next > last)
				break;
			last = next;
			nr_falling++;
		}
		if (nr_falling % 2)
			return whole + first;
	}
}

#endif
