/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * closed_loop: a fixed number of exchanges outstanding, each followed by the next. Either until
 * the time is over, to measure how many a server can do; or until a number of connections has
 * been opened, which then stay open until closed_loop_done().
 */
#ifndef BENCH_CLOSED_LOOP_H
#define BENCH_CLOSED_LOOP_H

#include "exchange.h"
#include "load_options.h"
#include "random.h"
#include "tally.h"

struct closed_loop {
	const struct load_options *options;
	struct target target;
	struct random random;
	int epoll_fd;
	uint64_t start_ns;
	uint64_t elapsed_ns; /* From the first to the last. */
	size_t nr_begun;
	size_t nr_ended;
	struct exchange_list running; /* By begun_ns, the oldest first. */
	struct exchange_list held; /* Answered, and open. */
	struct exchange_list spare;
	struct tally tally;
};

int closed_loop_init(struct closed_loop *loop, const struct load_options *options);

/* Closes what is held. */
void closed_loop_done(struct closed_loop *loop);

/* Errors of single connections are in the tally; returns only what makes going on impossible. */
int closed_loop_run(struct closed_loop *loop);

#endif
