/* SPDX-License-Identifier: GPL-2.0-only */
#include "work.h"

#include <errno.h>
#include <sys/prctl.h>
#include <time.h>

#define NSEC_PER_SEC 1000000000ULL

void work_init(void)
{
	/* A refusal only makes sleeps longer by microseconds. */
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now = { 0 };

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

/* Sleeps until an instant, so that a signal in between does not make the sleep longer. */
static void sleep_ns(uint64_t duration_ns)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + duration_ns;
	struct timespec end = {
		.tv_sec = (time_t)(end_ns / NSEC_PER_SEC),
		.tv_nsec = (long)(end_ns % NSEC_PER_SEC),
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
		;
}

/* Processor time of this thread, so that workers that share a processor all do the full work. */
static void spin_ns(uint64_t duration_ns)
{
	uint64_t end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + duration_ns;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns)
		;
}

void work_do(const struct http_request *request)
{
	if (request->action == HTTP_SLEEP)
		sleep_ns(request->duration_ns);
	else if (request->action == HTTP_SPIN)
		spin_ns(request->duration_ns);
}
