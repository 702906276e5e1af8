/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * connection: one client, from accept to close. Owns the descriptor and both buffers; reads,
 * does the work that a request asks for, and answers. Whoever waits for events is told what to
 * wait for next. Works on blocking and nonblocking descriptors alike.
 */
#ifndef WORKER_CONNECTION_H
#define WORKER_CONNECTION_H

#include "http.h"

/* Several answers, so that pipelined requests share a write. */
#define CONNECTION_OUT_BYTES (4 * HTTP_ANSWER_BYTES_MAX)

/* The answers of a worker differ only in whether the connection stays, so both are made once. */
struct answer {
	char bytes[HTTP_ANSWER_BYTES_MAX];
	size_t nr_bytes;
};

struct answers {
	struct answer keep;
	struct answer close;
};

enum connection_wait {
	CONNECTION_READ,
	CONNECTION_WRITE,
	CONNECTION_END, /* The caller calls connection_done(). */
};

struct connection {
	struct connection *next_allocated; /* Both lists are the server's. */
	struct connection *next_free;
	int fd;
	enum connection_wait waits_for;
	bool is_closing; /* Nothing follows what is in out[]. */
	bool is_lingering; /* The answer to a bad request is sent; the rest is thrown away. */
	size_t nr_lingered_bytes;
	size_t nr_in;
	size_t nr_out;
	size_t nr_sent; /* Of nr_out. */
	char in[HTTP_REQUEST_BYTES_MAX];
	char out[CONNECTION_OUT_BYTES];
};

/* Makes the answers of the worker with this number in the process @pid. */
void answers_init(struct answers *answers, unsigned int number, int pid);

/* Takes over @fd. */
void connection_init(struct connection *connection, int fd);
void connection_done(struct connection *connection);

/* Goes on after the event that it waited for. Returns what it waits for now. */
enum connection_wait connection_advance(struct connection *connection,
					const struct answers *answers);

#endif
