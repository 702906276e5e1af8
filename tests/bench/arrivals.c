/* SPDX-License-Identifier: GPL-2.0-only */
#include "arrivals.h"

#include "random.h"

#include <errno.h>
#include <stdlib.h>

static int arrivals_grow(struct arrivals *arrivals, size_t *nr_allocated)
{
	size_t nr = *nr_allocated ? *nr_allocated * 2 : 1024;
	struct arrival *items = reallocarray(arrivals->items, nr, sizeof(*items));

	if (!items)
		return -ENOMEM;
	arrivals->items = items;
	*nr_allocated = nr;
	return 0;
}

static int arrivals_add(struct arrivals *arrivals, size_t *nr_allocated, struct arrival arrival)
{
	int err = arrivals->nr == *nr_allocated ? arrivals_grow(arrivals, nr_allocated) : 0;

	if (!err)
		arrivals->items[arrivals->nr++] = arrival;
	return err;
}

static struct arrival draw_arrival(struct random *random, const struct mix *mix, double at_ns)
{
	unsigned int part = mix_pick(mix, random_below(random, mix->weight_sum));

	return (struct arrival){
		.at_ns = (uint64_t)at_ns,
		.demand_ns = mix->parts[part].demand_ns,
		.part = part,
	};
}

int arrivals_init(struct arrivals *arrivals, const struct mix *mix, double rate, double seconds,
		  uint64_t seed)
{
	struct random random = { .state = seed };
	double mean_gap_ns = 1e9 / rate;
	double end_ns = seconds * 1e9;
	double at_ns = mean_gap_ns * random_exponential(&random);
	size_t nr_allocated = 0;

	*arrivals = (struct arrivals){ 0 };
	if (!(rate * seconds <= ARRIVALS_MAX))
		return -E2BIG;
	while (at_ns < end_ns) {
		int err = arrivals_add(arrivals, &nr_allocated, draw_arrival(&random, mix, at_ns));

		if (err) {
			arrivals_done(arrivals);
			return err;
		}
		at_ns += mean_gap_ns * random_exponential(&random);
	}
	return 0;
}

void arrivals_done(struct arrivals *arrivals)
{
	free(arrivals->items);
	*arrivals = (struct arrivals){ 0 };
}
