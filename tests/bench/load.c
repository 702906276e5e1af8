/* SPDX-License-Identifier: GPL-2.0-only */
/* load: the load generator's main program. Runs one of the three modes and reports. */
#include "closed_loop.h"
#include "load_options.h"
#include "open_loop.h"
#include "report.h"
#include "simulate.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXIT_USAGE 2

static int failed(const char *what, int err)
{
	fprintf(stderr, "load: cannot %s: %s\n", what, strerror(-err));
	return err;
}

/* Simulates the arrivals that were sent; @scratch has room for a duration per arrival. */
static int compute_ideal(const struct arrivals *arrivals, size_t nr_sent, unsigned int nr_workers,
			 uint64_t *scratch, struct summary *ret_ideal)
{
	int err = simulate_central_queue(arrivals->items, nr_sent, nr_workers, scratch);

	if (!err)
		*ret_ideal = summary_of(scratch, nr_sent);
	return err;
}

static int report_run(const struct load_options *options, const struct arrivals *arrivals,
		      struct open_loop_result *result)
{
	struct open_report report = {
		.nr_requests = result->nr_lags,
		.latency = summary_of(result->latencies_ns, result->nr_latencies),
		.lag = summary_of(result->lags_ns, result->nr_lags),
		.has_ideal = options->nr_workers > 0,
	};
	int err = 0;

	/* The latencies are summed up, so their array is free for the ideal ones. */
	if (report.has_ideal)
		err = compute_ideal(arrivals, result->nr_lags, options->nr_workers,
				    result->latencies_ns, &report.ideal);
	if (err)
		return failed("simulate the ideal server", err);
	report_open(stdout, options, &report, &result->tally);
	return 0;
}

static int run_open(const struct load_options *options)
{
	struct open_loop_result result;
	struct arrivals arrivals;
	int err = arrivals_init(&arrivals, &options->mix, options->rate, options->seconds,
				options->seed);

	if (err)
		return failed("plan that many arrivals", err);
	err = open_loop_run(options, &arrivals, &result);
	if (err)
		failed("go on with the load", err);
	else
		err = report_run(options, &arrivals, &result);
	open_loop_result_done(&result);
	arrivals_done(&arrivals);
	return err;
}

static int run_rate(const struct load_options *options)
{
	struct closed_loop loop;
	int err = closed_loop_init(&loop, options);

	if (!err)
		err = closed_loop_run(&loop);
	if (err)
		failed("go on with the load", err);
	else
		report_rate(stdout, options, (double)loop.elapsed_ns / 1e9, &loop.tally);
	closed_loop_done(&loop);
	return err;
}

/* A background job of a shell has /dev/null there, which would be at its end at once. */
static bool is_stdin_watchable(void)
{
	struct stat stat;

	if (fstat(STDIN_FILENO, &stat))
		return false;
	return S_ISFIFO(stat.st_mode) || S_ISSOCK(stat.st_mode) || isatty(STDIN_FILENO);
}

/* Discards what comes, and says whether more can come. */
static bool is_stdin_open(void)
{
	char discarded[256];
	ssize_t nr = read(STDIN_FILENO, discarded, sizeof(discarded));

	return nr > 0 || (nr < 0 && errno == EINTR);
}

static int wait_for_input_or_signal(int signal_fd)
{
	struct pollfd waits[] = {
		{ .fd = signal_fd, .events = POLLIN },
		{ .fd = is_stdin_watchable() ? STDIN_FILENO : -1, .events = POLLIN },
	};

	for (;;) {
		if (poll(waits, 2, -1) < 0 && errno != EINTR)
			return -errno;
		if (waits[0].revents)
			return 0;
		if (waits[1].revents && !is_stdin_open())
			return 0;
	}
}

static int wait_for_the_end(void)
{
	sigset_t signals;
	int signal_fd;
	int err;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	if (sigprocmask(SIG_BLOCK, &signals, NULL))
		return -errno;
	signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
	if (signal_fd < 0)
		return -errno;
	err = wait_for_input_or_signal(signal_fd);
	close(signal_fd);
	return err;
}

/* While connections are being opened a signal simply ends the program, and so closes them. */
static int hold(struct closed_loop *loop)
{
	unsigned int nr_wanted = loop->options->nr_connections;
	int err = closed_loop_run(loop);
	size_t nr_held;

	if (err)
		return failed("go on opening connections", err);
	nr_held = loop->tally.nr_ok;
	report_hold(stdout, loop->options, &loop->tally);
	if (nr_held < nr_wanted)
		fprintf(stderr, "load: %zu of %u connections failed, and the others are held\n",
			nr_wanted - nr_held, nr_wanted);
	err = wait_for_the_end();
	if (err)
		return failed("wait for a signal", err);
	return nr_held < nr_wanted ? -EIO : 0;
}

static int run_hold(const struct load_options *options)
{
	struct closed_loop loop;
	int err = closed_loop_init(&loop, options);

	if (err)
		failed("prepare", err);
	else
		err = hold(&loop);
	closed_loop_done(&loop);
	return err;
}

static void prepare_process(struct load_options *options)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	/* By default a wait may end 50 us late, and every latency would contain that. */
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	if (!isatty(STDERR_FILENO))
		options->has_progress = false;
}

int main(int argc, char **argv)
{
	struct load_options options;
	int err = load_options_parse(argc, argv, &options);

	if (err)
		return err == -ECANCELED ? EXIT_SUCCESS : EXIT_USAGE;
	prepare_process(&options);
	switch (options.mode) {
	case LOAD_RATE:
		err = run_rate(&options);
		break;
	case LOAD_HOLD:
		err = run_hold(&options);
		break;
	default:
		err = run_open(&options);
		break;
	}
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
