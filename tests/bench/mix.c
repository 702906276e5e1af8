/* SPDX-License-Identifier: GPL-2.0-only */
#include "mix.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One minute: longer requests than runs measure nothing. */
#define DEMAND_MS_MAX 60000.0
#define WEIGHT_MAX 1000000

static bool is_kind(const char *kind)
{
	return !strcmp(kind, "sleep") || !strcmp(kind, "spin") || !strcmp(kind, "answer");
}

static void format_request(struct mix_part *part, const char *kind)
{
	char path[40] = "/";
	int length;

	if (strcmp(kind, "answer"))
		snprintf(path, sizeof(path), "/%s/%llu.%06llu", kind,
			 (unsigned long long)(part->demand_ns / 1000000),
			 (unsigned long long)(part->demand_ns % 1000000));
	length = snprintf(part->request, sizeof(part->request),
			  "GET %s HTTP/1.1\r\nHost: load\r\nConnection: close\r\n\r\n", path);
	part->nr_request_bytes = (size_t)length;
}

static int parse_part(const char *text, struct mix_part *ret_part)
{
	struct mix_part part = { 0 };
	double demand_ms;
	char kind[8];
	int nr_used = 0;

	if (sscanf(text, "%7[a-z]:%lf:%u%n", kind, &demand_ms, &part.weight, &nr_used) != 3)
		return -EINVAL;
	if (text[nr_used] || !is_kind(kind) || !(demand_ms >= 0 && demand_ms <= DEMAND_MS_MAX))
		return -EINVAL;
	if (!part.weight || part.weight > WEIGHT_MAX)
		return -EINVAL;
	if (!strcmp(kind, "answer") && demand_ms > 0)
		return -EINVAL;
	part.demand_ns = (uint64_t)(demand_ms * 1e6 + 0.5);
	format_request(&part, kind);
	*ret_part = part;
	return 0;
}

/* Cuts the next part off @rest. Returns false when it is longer than any part can be. */
static bool take_part(const char **rest, char *ret_part, size_t nr_bytes)
{
	size_t length = strcspn(*rest, ",");

	if (length >= nr_bytes)
		return false;
	memcpy(ret_part, *rest, length);
	ret_part[length] = '\0';
	*rest += length;
	return true;
}

int mix_parse(const char *text, struct mix *ret_mix)
{
	struct mix mix = { 0 };
	char part[64];

	for (;; text++) {
		if (mix.nr_parts == MIX_PARTS_MAX)
			return -E2BIG;
		if (!take_part(&text, part, sizeof(part)) ||
		    parse_part(part, &mix.parts[mix.nr_parts]))
			return -EINVAL;
		mix.weight_sum += mix.parts[mix.nr_parts++].weight;
		if (!*text)
			break;
	}
	*ret_mix = mix;
	return 0;
}

double mix_mean_demand_ns(const struct mix *mix)
{
	double sum = 0;

	for (unsigned int i = 0; i < mix->nr_parts; i++)
		sum += (double)mix->parts[i].demand_ns * mix->parts[i].weight;
	return sum / mix->weight_sum;
}

unsigned int mix_pick(const struct mix *mix, uint64_t ticket)
{
	unsigned int part = 0;

	while (part + 1 < mix->nr_parts && ticket >= mix->parts[part].weight)
		ticket -= mix->parts[part++].weight;
	return part;
}
