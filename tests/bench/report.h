/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * report: prints results, for people or as JSON. The JSON is fixed in shape and has no text that
 * would need escaping, so it is printed as it stands. Milliseconds unless a name says otherwise.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "load_options.h"
#include "summary.h"
#include "tally.h"

#include <stdio.h>

struct open_report {
	size_t nr_requests;
	struct summary latency;
	struct summary lag;
	struct summary ideal;
	bool has_ideal;
};

/* Both print the workers too, and for that sort the tally: it cannot count any more. */
void report_open(FILE *out, const struct load_options *options, const struct open_report *report,
		 struct tally *tally);
void report_rate(FILE *out, const struct load_options *options, double seconds,
		 struct tally *tally);

/* The line "held N", which scripts wait for, and with --json who holds them. */
void report_hold(FILE *out, const struct load_options *options, struct tally *tally);

#endif
