/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/pulse.h"
#include "base/cleanup.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#define SECOND_NS 1000000000

/* Started by nohup, a command goes on when its terminal is gone. */
static bool hangup_is_ignored(void)
{
	struct sigaction action;

	return !sigaction(SIGHUP, NULL, &action) && action.sa_handler == SIG_IGN;
}

static int open_signals(int *ret_fd)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGQUIT);
	sigaddset(&mask, SIGWINCH);
	if (!hangup_is_ignored())
		sigaddset(&mask, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &mask, NULL))
		return -errno;
	*ret_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	return *ret_fd < 0 ? -errno : 0;
}

static int open_timer(uint64_t interval_ns, int *ret_fd)
{
	int fd CLEANUP(cleanup_fd) = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	struct itimerspec times = {
		.it_interval = { (time_t)(interval_ns / SECOND_NS),
				 (long)(interval_ns % SECOND_NS) },
		/* Zero would stop it; the shortest time there is comes at once. */
		.it_value = { .tv_nsec = 1 },
	};

	if (fd < 0 || timerfd_settime(fd, 0, &times, NULL))
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int pulse_open(struct pulse *pulse, uint64_t interval_ns)
{
	int err = open_signals(&pulse->signals);

	return err ? err : open_timer(interval_ns, &pulse->timer);
}

int pulse_init(struct pulse *ret_pulse, uint64_t interval_ns)
{
	struct pulse pulse CLEANUP(pulse_done) = PULSE_NONE;
	int err = pulse_open(&pulse, interval_ns);

	if (err)
		return err;
	*ret_pulse = pulse;
	pulse = PULSE_NONE;
	return 0;
}

void pulse_done(struct pulse *pulse)
{
	cleanup_fd(&pulse->signals);
	cleanup_fd(&pulse->timer);
	*pulse = PULSE_NONE;
}

static int take_signals(const struct pulse *pulse)
{
	struct signalfd_siginfo info;
	int reasons = 0;

	while (read(pulse->signals, &info, sizeof(info)) == sizeof(info))
		reasons |= info.ssi_signo == SIGWINCH ? PULSE_RESIZED : PULSE_END;
	return reasons;
}

static int take_beat(const struct pulse *pulse)
{
	uint64_t nr_beats;

	return read(pulse->timer, &nr_beats, sizeof(nr_beats)) == sizeof(nr_beats) ? PULSE_BEAT : 0;
}

int pulse_wait(struct pulse *pulse, int input)
{
	struct pollfd sources[] = {
		{ .fd = pulse->signals, .events = POLLIN },
		{ .fd = pulse->timer, .events = POLLIN },
		{ .fd = input, .events = POLLIN },
	};
	int reasons;

	if (poll(sources, 3, -1) < 0)
		return errno == EINTR ? 0 : -errno;
	reasons = take_signals(pulse) | take_beat(pulse);
	return sources[2].revents ? reasons | PULSE_INPUT : reasons;
}
