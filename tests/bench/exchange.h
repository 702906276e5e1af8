/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * exchange: one connection with one request on it: connect, send, receive, wait until the server
 * closes. The server closes first, so that clients leave no TIME_WAIT behind and do not run out
 * of ports. Owns its descriptor. Nonblocking; the caller waits for events with poller.
 */
#ifndef BENCH_EXCHANGE_H
#define BENCH_EXCHANGE_H

#include "answer.h"
#include "target.h"

#include <stdint.h>
#include <sys/epoll.h>
#include <sys/queue.h>

#define EXCHANGE_ANSWER_BYTES_MAX 512

enum exchange_state {
	EXCHANGE_SENDING,
	EXCHANGE_RECEIVING,
	EXCHANGE_ANSWERED, /* facts are known; the server has not closed yet. */
	EXCHANGE_CLOSED,
};

struct exchange {
	TAILQ_ENTRY(exchange) link; /* Of the caller. */
	uint64_t begun_ns; /* Of the caller: what latency and timeout count from. */
	struct sockaddr_storage source; /* Of request_log. */
	socklen_t nr_source_bytes; /* Of request_log; 0: not known. */
	int fd;
	enum exchange_state state;
	struct answer_facts facts;
	const char *request; /* Borrowed. */
	size_t nr_request_bytes;
	size_t nr_sent;
	size_t nr_received;
	char answer[EXCHANGE_ANSWER_BYTES_MAX];
};

TAILQ_HEAD(exchange_list, exchange);

/* Connects, sends what can be sent at once, and adds itself to the epoll set. */
int exchange_begin(struct exchange *exchange, struct target *target, int epoll_fd,
		   const char *request, size_t nr_request_bytes);

/* Goes on after an event. An error ends it: the caller calls exchange_done(). */
int exchange_advance(struct exchange *exchange, int epoll_fd);

/* Closes the connection, and removes it from the epoll set. */
void exchange_done(struct exchange *exchange, int epoll_fd);

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t now_ns(void);

/* epoll_wait() with a timeout in nanoseconds. An interrupted wait counts as no event. */
int poller_wait(int epoll_fd, struct epoll_event *ret_events, int nr_max, uint64_t timeout_ns);

#endif
