/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * request_log: one line of CSV for each request of a run, in the order in which they end, for scripts
 * that have to know more than percentiles: when it began, how long it took, how it ended, who answered,
 * and from which address and port it came, so that it can be found among the sockets of the server.
 */
#ifndef BENCH_REQUEST_LOG_H
#define BENCH_REQUEST_LOG_H

#include "exchange.h"

#include <stdio.h>

struct request_log {
	FILE *file; /* NULL: nobody asked for a log, and all functions do nothing. */
	uint64_t epoch_ns; /* CLOCK_REALTIME when CLOCK_MONOTONIC was 0: scripts have no other clock. */
};

/* @path may be NULL. -errno when the file cannot be opened. Undone by request_log_close(). */
int request_log_open(struct request_log *log, const char *path);

/* Notes where a connection comes from, as long as it has a descriptor. */
void request_log_begin(const struct request_log *log, struct exchange *exchange);

/* @err: 0 for an answer, or the negative errno that ended the request. */
void request_log_end(const struct request_log *log, const struct exchange *exchange, int err);

/* -EIO when a line could not be written. */
int request_log_close(struct request_log *log);

#endif
