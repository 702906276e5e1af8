/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One-shot timers of an event loop, by CLOCK_MONOTONIC. All return 0 or more, or -errno.
 */
#ifndef SOCKSTEER_DAEMON_TIMER_H
#define SOCKSTEER_DAEMON_TIMER_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

/* One that does not run yet, and that may be late by accuracy_usec. The caller owns *ret_timer. */
int timer_new(sd_event *loop, uint64_t accuracy_usec, sd_event_time_handler_t handler,
	      void *argument, sd_event_source **ret_timer);

/* Starts it anew, whether it runs or not. */
int timer_start(sd_event_source *timer, uint64_t delay_usec);

bool timer_is_running(sd_event_source *timer);

#endif
