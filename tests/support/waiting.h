/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * waiting: until something is so, with a deadline. Whatever other processes do takes its time, and
 * much more of it on an emulated machine; a test waits for the condition and never for a duration.
 */
#ifndef SUPPORT_WAITING_H
#define SUPPORT_WAITING_H

#include <stdbool.h>

/* Reached only by what never comes. Emulated machines are a hundred times slower than real ones. */
#define DEADLINE_MS 30000

/* Asks again and again; true as soon as it holds, false when it does not by the deadline. */
bool wait_until(bool (*holds)(void *argument), void *argument, unsigned int deadline_ms);

#endif
