/* SPDX-License-Identifier: GPL-2.0-only */
#include "daemon/timer.h"

#include <time.h>

int timer_new(sd_event *loop, uint64_t accuracy_usec, sd_event_time_handler_t handler,
	      void *argument, sd_event_source **ret_timer)
{
	int err = sd_event_add_time(loop, ret_timer, CLOCK_MONOTONIC, UINT64_MAX, accuracy_usec,
				    handler, argument);

	return err < 0 ? err : sd_event_source_set_enabled(*ret_timer, SD_EVENT_OFF);
}

int timer_start(sd_event_source *timer, uint64_t delay_usec)
{
	uint64_t now;
	int err = sd_event_now(sd_event_source_get_event(timer), CLOCK_MONOTONIC, &now);

	if (err >= 0)
		err = sd_event_source_set_time(timer, now + delay_usec);
	return err < 0 ? err : sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

bool timer_is_running(sd_event_source *timer)
{
	int enabled = SD_EVENT_OFF;

	return sd_event_source_get_enabled(timer, &enabled) >= 0 && enabled != SD_EVENT_OFF;
}
