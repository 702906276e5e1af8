/* SPDX-License-Identifier: GPL-2.0-only */
/* The events that the kernel side reports, and what they lead to. */
#include "base/clock.h"
#include "daemon/daemon_state.h"
#include "daemon/timer.h"

uint64_t daemon_allowed_usec(struct daemon *daemon, uint64_t delay_usec)
{
	uint64_t least_usec = (churn_delay_ns(&daemon->churn, clock_now_ns()) + 999) / 1000;

	return delay_usec > least_usec ? delay_usec : least_usec;
}

/*
 * An update soon, or when the allowance lets it. While it has to wait, the events wait too, in the
 * ring: reading them one by one would cost as much again.
 */
static int plan_update(struct daemon *daemon)
{
	uint64_t delay_usec = daemon_allowed_usec(daemon, SETTLE_USEC), now, planned = 0;

	if (churn_begins_to_bite(&daemon->churn, clock_now_ns()))
		keeper_remark_churn(daemon->keeper, &daemon->churn);
	if (delay_usec > SETTLE_USEC)
		sd_event_source_set_enabled(daemon->readable, SD_EVENT_OFF);
	if (timer_is_running(daemon->settle) &&
	    sd_event_now(daemon->loop, CLOCK_MONOTONIC, &now) >= 0 &&
	    sd_event_source_get_time(daemon->settle, &planned) >= 0 && planned <= now + delay_usec)
		return 0;
	return timer_start(daemon->settle, delay_usec);
}

/* A listener came or went somewhere on the machine, or steer found out something. */
static void on_event(const struct event *event, void *argument)
{
	struct daemon *daemon = argument;

	if (event->kind == EVENT_ARRIVAL) {
		daemon->queues_usec = keeper_take_arrival(daemon->keeper, event);
		return;
	}
	if (event->kind == EVENT_STUCK || event->kind == EVENT_RECOVERED) {
		keeper_report_hang(daemon->keeper, event);
		daemon->stuck |= event->kind == EVENT_STUCK;
		return;
	}
	if (!keeper_take_event(daemon->keeper, event))
		return;
	daemon->retry_usec = RETRY_USEC;
	churn_count(&daemon->churn, event);
	daemon->changed = true;
}

/* True if something changed that an update has to look at. */
static bool read_events(struct daemon *daemon)
{
	daemon->changed = false;
	daemon->queues_usec = 0;
	daemon->stuck = false;
	/* A ring that was full has lost events, perhaps one of ours. */
	return event_reader_drain(daemon->reader) >= EVENTS_FULL || daemon->changed;
}

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *argument)
{
	struct daemon *daemon = argument;
	int err = 0;

	(void)source;
	(void)fd;
	(void)revents;
	if (read_events(daemon))
		err = plan_update(daemon);
	if (err >= 0 && daemon->stuck)
		err = timer_start(daemon->queues, 0);
	else if (err >= 0 && daemon->queues_usec && !timer_is_running(daemon->queues))
		err = timer_start(daemon->queues, daemon->queues_usec);
	return err;
}

int daemon_open_reader(struct daemon *daemon)
{
	int err;

	daemon->readable = sd_event_source_disable_unref(daemon->readable);
	event_reader_free(daemon->reader);
	daemon->reader = NULL;
	if (keeper_get_events(daemon->keeper) < 0)
		return 0;
	err = event_reader_new(keeper_get_events(daemon->keeper), on_event, daemon,
			       &daemon->reader);
	if (err)
		return err;
	return sd_event_add_io(daemon->loop, &daemon->readable, event_reader_get_fd(daemon->reader),
			       EPOLLIN, on_readable, daemon);
}

int daemon_read_waiting(struct daemon *daemon)
{
	int enabled = SD_EVENT_ON;

	if (!daemon->readable || sd_event_source_get_enabled(daemon->readable, &enabled) < 0 ||
	    enabled == SD_EVENT_ON)
		return 0;
	read_events(daemon);
	return sd_event_source_set_enabled(daemon->readable, SD_EVENT_ON);
}
