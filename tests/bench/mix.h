/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mix: which requests a load consists of, and how often each occurs. Pure.
 *
 * Written as KIND:MS:WEIGHT, separated by commas. "sleep:1:95,sleep:20:5" is 95 % of requests
 * that take a worker 1 ms and 5 % that take it 20 ms. KIND is sleep, spin or answer.
 */
#ifndef BENCH_MIX_H
#define BENCH_MIX_H

#include <stddef.h>
#include <stdint.h>

#define MIX_PARTS_MAX 16
#define MIX_REQUEST_BYTES 96

struct mix_part {
	uint64_t demand_ns; /* How long a worker is occupied. */
	unsigned int weight;
	size_t nr_request_bytes;
	char request[MIX_REQUEST_BYTES]; /* As it goes over the wire. */
};

struct mix {
	struct mix_part parts[MIX_PARTS_MAX];
	unsigned int nr_parts;
	unsigned int weight_sum;
};

/* -EINVAL: not a mix. -E2BIG: more than MIX_PARTS_MAX parts. */
int mix_parse(const char *text, struct mix *ret_mix);

double mix_mean_demand_ns(const struct mix *mix);

/* The part that @ticket, which is below weight_sum, belongs to. */
unsigned int mix_pick(const struct mix *mix, uint64_t ticket);

#endif
