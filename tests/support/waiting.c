/* SPDX-License-Identifier: GPL-2.0-only */
#include "support/waiting.h"

#include <poll.h>
#include <stdint.h>
#include <time.h>

/* Between two looks. Short beside anything that is waited for, long beside one look. */
#define PAUSE_MS 2

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

bool wait_until(bool (*holds)(void *argument), void *argument, unsigned int deadline_ms)
{
	uint64_t end_ms = now_ms() + deadline_ms;

	while (!holds(argument)) {
		if (now_ms() >= end_ms)
			return false;
		poll(NULL, 0, PAUSE_MS);
	}
	return true;
}
