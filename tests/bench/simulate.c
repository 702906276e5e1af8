/* SPDX-License-Identifier: GPL-2.0-only */
#include "simulate.h"

#include <errno.h>
#include <stdlib.h>

/* Replaces the smallest element of a binary heap, which is its first, and restores the order. */
static void heap_replace_first(uint64_t *heap, size_t nr, uint64_t value)
{
	size_t hole = 0;

	for (;;) {
		size_t child = 2 * hole + 1;

		if (child >= nr)
			break;
		if (child + 1 < nr && heap[child + 1] < heap[child])
			child++;
		if (heap[child] >= value)
			break;
		heap[hole] = heap[child];
		hole = child;
	}
	heap[hole] = value;
}

int simulate_central_queue(const struct arrival *arrivals, size_t nr, unsigned int nr_workers,
			   uint64_t *ret_latencies_ns)
{
	uint64_t *free_from_ns; /* When each worker is free again: a heap, the earliest first. */

	if (!nr_workers)
		return -EINVAL;
	free_from_ns = calloc(nr_workers, sizeof(*free_from_ns));
	if (!free_from_ns)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		uint64_t start_ns = arrivals[i].at_ns;

		if (free_from_ns[0] > start_ns)
			start_ns = free_from_ns[0];
		ret_latencies_ns[i] = start_ns + arrivals[i].demand_ns - arrivals[i].at_ns;
		heap_replace_first(free_from_ns, nr_workers, start_ns + arrivals[i].demand_ns);
	}
	free(free_from_ns);
	return 0;
}
