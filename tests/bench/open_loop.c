/* SPDX-License-Identifier: GPL-2.0-only */
#include "open_loop.h"

#include "exchange.h"
#include "request_log.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define EVENTS_MAX 256
#define NSEC_PER_SEC 1000000000ULL

/* How many are sent before answers are looked at again, when the generator is late. */
#define BURST_MAX 32

struct open_loop {
	const struct load_options *options;
	const struct arrivals *arrivals;
	struct open_loop_result *result;
	struct target target;
	struct request_log log;
	int epoll_fd;
	int signal_fd;
	uint64_t start_ns;
	uint64_t next_progress_ns;
	size_t next; /* The arrival that is sent next. */
	size_t nr_arrivals; /* Fewer than are planned after SIGTERM. */
	struct exchange_list running; /* By begun_ns, the oldest first. */
	struct exchange_list spare;
};

static struct exchange *exchange_take(struct open_loop *loop)
{
	struct exchange *exchange = TAILQ_FIRST(&loop->spare);

	if (!exchange)
		return malloc(sizeof(*exchange));
	TAILQ_REMOVE(&loop->spare, exchange, link);
	return exchange;
}

static void finish(struct open_loop *loop, struct exchange *exchange)
{
	exchange_done(exchange, loop->epoll_fd);
	TAILQ_REMOVE(&loop->running, exchange, link);
	TAILQ_INSERT_HEAD(&loop->spare, exchange, link);
}

static void note_error(struct open_loop *loop, const struct exchange *exchange, int err)
{
	tally_error(&loop->result->tally, err);
	request_log_end(&loop->log, exchange, err);
}

static int begin(struct open_loop *loop, const struct arrival *arrival, uint64_t planned_ns)
{
	const struct mix_part *part = &loop->options->mix.parts[arrival->part];
	struct exchange *exchange = exchange_take(loop);
	int err;

	if (!exchange)
		return -ENOMEM;
	exchange->begun_ns = planned_ns;
	TAILQ_INSERT_TAIL(&loop->running, exchange, link);
	err = exchange_begin(exchange, &loop->target, loop->epoll_fd, part->request,
			     part->nr_request_bytes);
	request_log_begin(&loop->log, exchange);
	if (err) {
		note_error(loop, exchange, err);
		finish(loop, exchange);
	}
	return 0;
}

static int begin_due(struct open_loop *loop)
{
	for (unsigned int nr = 0; nr < BURST_MAX && loop->next < loop->nr_arrivals; nr++) {
		const struct arrival *arrival = &loop->arrivals->items[loop->next];
		uint64_t planned_ns = loop->start_ns + arrival->at_ns;
		uint64_t now = now_ns();
		int err;

		if (planned_ns > now)
			return 0;
		loop->result->lags_ns[loop->result->nr_lags++] = now - planned_ns;
		loop->next++;
		err = begin(loop, arrival, planned_ns);
		if (err)
			return err;
	}
	return 0;
}

/* An answer that the server does not follow by closing is complete nevertheless. */
static void give_up_overdue(struct open_loop *loop)
{
	uint64_t now = now_ns();

	for (;;) {
		struct exchange *oldest = TAILQ_FIRST(&loop->running);

		if (!oldest || oldest->begun_ns + loop->options->timeout_ns > now)
			return;
		if (oldest->state != EXCHANGE_ANSWERED)
			note_error(loop, oldest, -ETIMEDOUT);
		finish(loop, oldest);
	}
}

static void note_answer(struct open_loop *loop, const struct exchange *exchange)
{
	struct open_loop_result *result = loop->result;

	result->latencies_ns[result->nr_latencies++] = now_ns() - exchange->begun_ns;
	tally_answer(&result->tally, exchange->facts.worker, exchange->facts.pid);
	request_log_end(&loop->log, exchange, 0);
}

static void advance(struct open_loop *loop, struct exchange *exchange)
{
	bool was_answered = exchange->state == EXCHANGE_ANSWERED;
	int err = exchange_advance(exchange, loop->epoll_fd);

	if (!err && !was_answered && exchange->state == EXCHANGE_ANSWERED)
		note_answer(loop, exchange);
	if (err && !was_answered)
		note_error(loop, exchange, err);
	if (err || exchange->state == EXCHANGE_CLOSED)
		finish(loop, exchange);
}

/* Now, if there is nothing to wait for: the last request can fail at once. */
static uint64_t next_wakeup_ns(const struct open_loop *loop)
{
	const struct exchange *oldest = TAILQ_FIRST(&loop->running);
	uint64_t wakeup_ns = UINT64_MAX;

	if (loop->next < loop->nr_arrivals)
		wakeup_ns = loop->start_ns + loop->arrivals->items[loop->next].at_ns;
	if (oldest && oldest->begun_ns + loop->options->timeout_ns < wakeup_ns)
		wakeup_ns = oldest->begun_ns + loop->options->timeout_ns;
	if (loop->options->has_progress && loop->next_progress_ns < wakeup_ns)
		wakeup_ns = loop->next_progress_ns;
	return wakeup_ns == UINT64_MAX ? 0 : wakeup_ns;
}

/* What is on its way is still waited for; a second SIGTERM ends the program. */
static void end_arrivals(struct open_loop *loop)
{
	sigset_t signals;

	loop->nr_arrivals = loop->next;
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, loop->signal_fd, NULL);
	if (read(loop->signal_fd, &(struct signalfd_siginfo){ 0 },
		 sizeof(struct signalfd_siginfo)) < 0)
		return;
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_UNBLOCK, &signals, NULL);
}

static int wait_for_events(struct open_loop *loop)
{
	struct epoll_event events[EVENTS_MAX];
	uint64_t wakeup_ns = next_wakeup_ns(loop);
	uint64_t now = now_ns();
	int nr = poller_wait(loop->epoll_fd, events, EVENTS_MAX,
			     wakeup_ns > now ? wakeup_ns - now : 0);

	for (int i = 0; i < nr; i++) {
		if (events[i].data.ptr)
			advance(loop, events[i].data.ptr);
		else
			end_arrivals(loop);
	}
	return nr < 0 ? nr : 0;
}

static void show_progress(struct open_loop *loop)
{
	uint64_t now = now_ns();

	if (!loop->options->has_progress || now < loop->next_progress_ns)
		return;
	loop->next_progress_ns = now + NSEC_PER_SEC;
	fprintf(stderr, "\r\033[K%3.0f of %.0f s: %zu of %zu sent, %zu answered, %zu errors",
		(double)(now - loop->start_ns) / NSEC_PER_SEC, loop->options->seconds, loop->next,
		loop->arrivals->nr, loop->result->nr_latencies,
		tally_nr_errors(&loop->result->tally));
}

/* Ends because arrivals are finite and every exchange has a timeout. */
static int run(struct open_loop *loop)
{
	int err = 0;

	loop->start_ns = now_ns();
	loop->next_progress_ns = loop->start_ns;
	while (!err && (loop->next < loop->nr_arrivals || !TAILQ_EMPTY(&loop->running))) {
		err = begin_due(loop);
		if (!err)
			err = wait_for_events(loop);
		give_up_overdue(loop);
		show_progress(loop);
	}
	if (loop->options->has_progress)
		fputs("\r\033[K", stderr);
	return err;
}

static void free_exchanges(struct open_loop *loop)
{
	struct exchange *exchange;

	while ((exchange = TAILQ_FIRST(&loop->running)))
		finish(loop, exchange);
	while ((exchange = TAILQ_FIRST(&loop->spare))) {
		TAILQ_REMOVE(&loop->spare, exchange, link);
		free(exchange);
	}
}

/* Events of the signals carry NULL, those of exchanges their exchange. */
static int watch_signals(struct open_loop *loop)
{
	struct epoll_event event = { .events = EPOLLIN };
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &signals, NULL))
		return -errno;
	loop->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
	if (loop->signal_fd < 0)
		return -errno;
	return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->signal_fd, &event) ? -errno : 0;
}

/* What a run needs besides memory for its result. */
static int run_logged(struct open_loop *loop)
{
	int err = request_log_open(&loop->log, loop->options->log_path);
	int log_err;

	if (err)
		return err;
	err = run(loop);
	free_exchanges(loop);
	log_err = request_log_close(&loop->log);
	return err ? err : log_err;
}

int open_loop_run(const struct load_options *options, const struct arrivals *arrivals,
		  struct open_loop_result *result)
{
	struct open_loop loop = {
		.options = options,
		.arrivals = arrivals,
		.result = result,
		.target = options->target,
		.signal_fd = -1,
		.nr_arrivals = arrivals->nr,
	};
	int err;

	memset(result, 0, sizeof(*result));
	/* One more than needed, because calloc() of nothing may return NULL. */
	result->latencies_ns = calloc(arrivals->nr + 1, sizeof(uint64_t));
	result->lags_ns = calloc(arrivals->nr + 1, sizeof(uint64_t));
	if (!result->latencies_ns || !result->lags_ns)
		return -ENOMEM;
	loop.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop.epoll_fd < 0)
		return -errno;
	TAILQ_INIT(&loop.running);
	TAILQ_INIT(&loop.spare);
	err = watch_signals(&loop);
	if (!err)
		err = run_logged(&loop);
	if (loop.signal_fd >= 0)
		close(loop.signal_fd);
	close(loop.epoll_fd);
	return err;
}

void open_loop_result_done(struct open_loop_result *result)
{
	free(result->latencies_ns);
	free(result->lags_ns);
	result->latencies_ns = NULL;
	result->lags_ns = NULL;
}
