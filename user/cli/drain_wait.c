/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/drain_wait.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "steering/drain.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/signalfd.h>

/* Between two looks: nobody notices the delay, and a look costs some microseconds. */
#define LOOK_NS 50000000

/* Between two lines of progress where they stay. */
#define LINE_NS 1000000000

/* What is left, in words: "12 connections and 1 handshake". */
#define LEFT_TEXT_SIZE 96

struct wait {
	const struct worker_report *report;
	struct drain *drain; /* owned */
	int signals; /* owned */
	uint64_t deadline_ns; /* or NO_TIMEOUT */
	bool terminal;
	char shown[LEFT_TEXT_SIZE]; /* the last progress, "" before the first */
	uint64_t shown_ns;
};

static void wait_done(struct wait *wait)
{
	drain_free(&wait->drain);
	cleanup_fd(&wait->signals);
}

static void fill_signals(sigset_t *ret_set)
{
	sigemptyset(ret_set);
	sigaddset(ret_set, SIGINT);
	sigaddset(ret_set, SIGTERM);
}

void drain_wait_prepare(void)
{
	sigset_t set;

	fill_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* Queued connections are among those held, but for those from before the attach. */
static void left_text(const struct drain_state *state, char ret_text[LEFT_TEXT_SIZE])
{
	uint64_t connections = state->held ? state->held : state->queued;
	int length = 0;

	if (connections || !state->half_open)
		length = snprintf(ret_text, LEFT_TEXT_SIZE, "%" PRIu64 " connection%s", connections,
				  plural(connections));
	if (state->half_open)
		snprintf(ret_text + length, LEFT_TEXT_SIZE - (size_t)length,
			 "%s%" PRIu64 " handshake%s", length ? " and " : "", state->half_open,
			 plural(state->half_open));
}

static void show_progress(struct wait *wait, const struct drain_state *state)
{
	uint64_t now = clock_now_ns();
	char text[LEFT_TEXT_SIZE];

	left_text(state, text);
	if (!strcmp(text, wait->shown) ||
	    (!wait->terminal && wait->shown[0] && now - wait->shown_ns < LINE_NS))
		return;
	/* The last sequence clears what is left of a longer line. */
	fprintf(stderr, wait->terminal ? "\r%s still holds %s\x1b[K" : "%s still holds %s\n",
		wait->report->worker, text);
	memcpy(wait->shown, text, sizeof(text));
	wait->shown_ns = now;
}

/* What is said next begins on a line of its own. */
static void end_progress(struct wait *wait)
{
	if (wait->terminal && wait->shown[0])
		fputc('\n', stderr);
	wait->shown[0] = '\0';
}

static int print_end(struct wait *wait, const struct drain_state *state)
{
	end_progress(wait);
	printf("%s: %s %s\n", wait->report->group, wait->report->worker,
	       state->stage == DRAIN_ENDED ? "has ended" : "holds nothing any more");
	return 0;
}

static int give_up(struct wait *wait, const struct drain_state *state, int err, const char *why,
		   struct failure *failure)
{
	char text[LEFT_TEXT_SIZE];

	left_text(state, text);
	end_progress(wait);
	return failure_set(failure, EXIT_FAILED, err,
			   "%s: %s still holds %s; %s, and it drains on until \"socksteer resume\"",
			   wait->report->group, wait->report->worker, text, why);
}

/* There is nothing to wait for any more. */
static int say_undone(struct wait *wait, enum drain_stage stage, struct failure *failure)
{
	end_progress(wait);
	if (stage == DRAIN_RESUMED)
		return failure_set(failure, EXIT_FAILED, ECANCELED,
				   "%s: %s was resumed meanwhile, and gets new connections again",
				   wait->report->group, wait->report->worker);
	return failure_set(failure, EXIT_FAILED, ESTALE,
			   "%s: %s is no longer steered (its listener closed or changed hands, or "
			   "the group was detached), so nobody counts what it still holds",
			   wait->report->group, wait->report->worker);
}

static int next_look_ms(const struct wait *wait)
{
	uint64_t now = clock_now_ns(), pause_ns = LOOK_NS;

	if (wait->deadline_ns <= now)
		return 0;
	if (wait->deadline_ns - now < pause_ns)
		pause_ns = wait->deadline_ns - now;
	/* Rounded up, so that the last look comes after the deadline and not just before. */
	return (int)((pause_ns + 999999) / 1000000);
}

/* Until it is time to look again, the process ends, or a signal comes: then true. */
static bool pause_is_interrupted(const struct wait *wait)
{
	struct pollfd fds[] = {
		{ .fd = wait->signals, .events = POLLIN },
		{ .fd = drain_end_fd(wait->drain), .events = POLLIN },
	};

	return poll(fds, 2, next_look_ms(wait)) > 0 && fds[0].revents;
}

static int wait_until_empty(struct wait *wait, struct failure *failure)
{
	struct drain_state state;
	bool late;
	int err;

	for (;;) {
		late = clock_now_ns() >= wait->deadline_ns;
		err = drain_look(wait->drain, &state, failure);
		if (err)
			return err;
		if (state.stage == DRAIN_EMPTY || state.stage == DRAIN_ENDED)
			return print_end(wait, &state);
		if (state.stage != DRAIN_HOLDS)
			return say_undone(wait, state.stage, failure);
		if (late)
			return give_up(wait, &state, ETIMEDOUT, "the time is over", failure);
		show_progress(wait, &state);
		if (pause_is_interrupted(wait))
			return give_up(wait, &state, EINTR, "the waiting was stopped", failure);
	}
}

int drain_wait(const struct worker_report *report, uint64_t timeout_ns, struct failure *failure)
{
	struct wait wait CLEANUP(wait_done) = {
		.report = report,
		.signals = -1,
		.deadline_ns = NO_TIMEOUT,
		.terminal = isatty(STDERR_FILENO),
	};
	sigset_t set;
	int err;

	if (timeout_ns != NO_TIMEOUT)
		wait.deadline_ns = clock_now_ns() + timeout_ns;
	fill_signals(&set);
	wait.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (wait.signals < 0)
		return failure_set(failure, EXIT_FAILED, errno, "cannot wait for signals: %s",
				   strerror(errno));
	err = drain_new(report, &wait.drain, failure);
	return err ? err : wait_until_empty(&wait, failure);
}
