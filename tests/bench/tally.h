/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tally: how the requests of a run ended, and which workers answered them. Pure.
 */
#ifndef BENCH_TALLY_H
#define BENCH_TALLY_H

#include <stddef.h>

/* Room for 1024 workers, each replaced a few times. Answers of more are in nr_ok only. */
#define TALLY_WORKERS_MAX 4096

enum tally_outcome {
	TALLY_OK,
	TALLY_REFUSED,
	TALLY_RESET,
	TALLY_TIMEOUT,
	TALLY_OTHER,
	NR_TALLY_OUTCOMES,
};

struct tally_worker {
	unsigned int number;
	int pid; /* 0: this place is free. */
	size_t nr_answers;
};

struct tally {
	size_t nr_ok;
	size_t nr_refused;
	size_t nr_reset;
	size_t nr_timeouts;
	size_t nr_other;
	struct tally_worker workers[TALLY_WORKERS_MAX];
};

void tally_answer(struct tally *tally, unsigned int number, int pid);

/* As what a request counts that ended with @err, a negative errno or 0. */
enum tally_outcome tally_outcome_of(int err);

/* @err: the negative errno that ended the request. */
void tally_error(struct tally *tally, int err);

size_t tally_nr_errors(const struct tally *tally);

/* Moves the workers to the front, by number. Returns how many there are. Ends the counting. */
size_t tally_sort_workers(struct tally *tally);

#endif
