/* SPDX-License-Identifier: GPL-2.0-only */
#include "closed_loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVENTS_MAX 256

static const char hold_request[] = "GET /hold HTTP/1.1\r\nHost: load\r\n\r\n";

int closed_loop_init(struct closed_loop *loop, const struct load_options *options)
{
	memset(loop, 0, sizeof(*loop));
	loop->options = options;
	loop->target = options->target;
	loop->random.state = options->seed;
	TAILQ_INIT(&loop->running);
	TAILQ_INIT(&loop->held);
	TAILQ_INIT(&loop->spare);
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return loop->epoll_fd < 0 ? -errno : 0;
}

static void free_list(struct exchange_list *list, int epoll_fd)
{
	struct exchange *exchange;

	while ((exchange = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, exchange, link);
		exchange_done(exchange, epoll_fd);
		free(exchange);
	}
}

void closed_loop_done(struct closed_loop *loop)
{
	free_list(&loop->running, loop->epoll_fd);
	free_list(&loop->held, loop->epoll_fd);
	free_list(&loop->spare, loop->epoll_fd);
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	loop->epoll_fd = -1;
}

/* Takes an exchange off running and puts it where it belongs. */
static void finish(struct closed_loop *loop, struct exchange *exchange, bool is_held)
{
	loop->nr_ended++;
	TAILQ_REMOVE(&loop->running, exchange, link);
	if (is_held) {
		/* It stays open, but its events would keep the loop busy. */
		epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, exchange->fd, NULL);
		TAILQ_INSERT_TAIL(&loop->held, exchange, link);
		return;
	}
	exchange_done(exchange, loop->epoll_fd);
	TAILQ_INSERT_HEAD(&loop->spare, exchange, link);
}

static struct exchange *exchange_take(struct closed_loop *loop)
{
	struct exchange *exchange = TAILQ_FIRST(&loop->spare);

	if (!exchange)
		return calloc(1, sizeof(*exchange));
	TAILQ_REMOVE(&loop->spare, exchange, link);
	return exchange;
}

static int begin(struct closed_loop *loop)
{
	const struct mix *mix = &loop->options->mix;
	uint64_t ticket = random_below(&loop->random, mix->weight_sum);
	const struct mix_part *part = &mix->parts[mix_pick(mix, ticket)];
	bool is_hold = loop->options->mode == LOAD_HOLD;
	struct exchange *exchange = exchange_take(loop);
	int err;

	if (!exchange)
		return -ENOMEM;
	exchange->begun_ns = now_ns();
	loop->nr_begun++;
	TAILQ_INSERT_TAIL(&loop->running, exchange, link);
	err = exchange_begin(exchange, &loop->target, loop->epoll_fd,
			     is_hold ? hold_request : part->request,
			     is_hold ? sizeof(hold_request) - 1 : part->nr_request_bytes);
	if (err) {
		tally_error(&loop->tally, err);
		finish(loop, exchange, false);
	}
	return 0;
}

static bool wants_more(const struct closed_loop *loop)
{
	if (loop->options->mode == LOAD_HOLD)
		return loop->nr_begun < loop->options->nr_connections;
	return (double)(now_ns() - loop->start_ns) < loop->options->seconds * 1e9;
}

/*
 * No more beginnings in one go than may be outstanding: when all of them fail at once, as with
 * a server that is gone, the loop still looks at its clock.
 */
static int begin_more(struct closed_loop *loop)
{
	int err = 0;

	for (unsigned int nr = 0; nr < loop->options->nr_parallel && !err; nr++) {
		if (loop->nr_begun - loop->nr_ended >= loop->options->nr_parallel ||
		    !wants_more(loop))
			break;
		err = begin(loop);
	}
	return err;
}

static void advance(struct closed_loop *loop, struct exchange *exchange)
{
	bool was_answered = exchange->state == EXCHANGE_ANSWERED;
	int err = exchange_advance(exchange, loop->epoll_fd);
	bool is_answered = !err && exchange->state == EXCHANGE_ANSWERED;

	if (is_answered && !was_answered)
		tally_answer(&loop->tally, exchange->facts.worker, exchange->facts.pid);
	if (err && !was_answered)
		tally_error(&loop->tally, err);
	if (is_answered && loop->options->mode == LOAD_HOLD)
		finish(loop, exchange, true);
	else if (err || exchange->state == EXCHANGE_CLOSED)
		finish(loop, exchange, false);
}

static void give_up_overdue(struct closed_loop *loop)
{
	uint64_t now = now_ns();

	for (;;) {
		struct exchange *oldest = TAILQ_FIRST(&loop->running);

		if (!oldest || oldest->begun_ns + loop->options->timeout_ns > now)
			return;
		if (oldest->state != EXCHANGE_ANSWERED)
			tally_error(&loop->tally, -ETIMEDOUT);
		finish(loop, oldest, false);
	}
}

static int wait_for_events(struct closed_loop *loop)
{
	const struct exchange *oldest = TAILQ_FIRST(&loop->running);
	struct epoll_event events[EVENTS_MAX];
	uint64_t now = now_ns();
	uint64_t deadline_ns = oldest ? oldest->begun_ns + loop->options->timeout_ns : now;
	int nr = poller_wait(loop->epoll_fd, events, EVENTS_MAX,
			     deadline_ns > now ? deadline_ns - now : 0);

	for (int i = 0; i < nr; i++)
		advance(loop, events[i].data.ptr);
	return nr < 0 ? nr : 0;
}

/* Ends because the connections or the time are limited, and every exchange has a timeout. */
int closed_loop_run(struct closed_loop *loop)
{
	int err;

	loop->start_ns = now_ns();
	do {
		err = begin_more(loop);
		if (!err)
			err = wait_for_events(loop);
		give_up_overdue(loop);
	} while (!err && (!TAILQ_EMPTY(&loop->running) || wants_more(loop)));
	loop->elapsed_ns = now_ns() - loop->start_ns;
	return err;
}
