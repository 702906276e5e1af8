/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SOCKSTEER_BASE_CLOCK_H
#define SOCKSTEER_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC in nanoseconds: the clock of bpf_ktime_get_ns(), so that both sides compare. */
static inline uint64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The processor time that the process has taken, in user space and in the kernel. */
static inline uint64_t clock_process_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#endif
