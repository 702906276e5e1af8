/* SPDX-License-Identifier: GPL-2.0-only */
#include "daemon/daemon.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/daemon_state.h"
#include "daemon/metrics.h"
#include "daemon/privileges.h"
#include "daemon/signals.h"
#include "daemon/timer.h"
#include "steering/audit.h"

#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

/* How often a look is taken at what no event tells, see watch.h. */
#define LOOK_USEC 500000

/*
 * How often the counters are compared with the sockets; and how soon after a change of members, where
 * a comparison is cheap. Under constant change it takes no more than a tenth of one CPU.
 */
#define AUDIT_USEC 60000000
#define AUDIT_SOON_USEC 1000000
#define AUDIT_REST 10

/* The look and the audit may be late; systemd then wakes up for several timers at once. */
#define EXACT_USEC 1
#define LATE_USEC (LOOK_USEC / 4)

static void daemon_done(struct daemon *daemon)
{
	sd_event_source_unref(daemon->readable);
	sd_event_source_unref(daemon->settle);
	sd_event_source_unref(daemon->check);
	sd_event_source_unref(daemon->look);
	sd_event_source_unref(daemon->audit);
	sd_event_source_unref(daemon->queues);
	metrics_free(daemon->metrics);
	sd_event_unref(daemon->loop);
	event_reader_free(daemon->reader);
	keeper_free(daemon->keeper);
}

static void notify_status(const struct daemon *daemon)
{
	sd_notifyf(0, "STATUS=steering %zu groups", keeper_nr_steered(daemon->keeper));
}

static uint64_t audit_soon_usec(const struct daemon *daemon)
{
	uint64_t rest_usec = AUDIT_REST * daemon->audit_usec;

	return rest_usec > AUDIT_SOON_USEC ? rest_usec : AUDIT_SOON_USEC;
}

/* Never later than it would have come: under constant change it would not come at all. */
static int audit_soon(struct daemon *daemon)
{
	uint64_t now, planned = 0, delay_usec = audit_soon_usec(daemon);
	int err = sd_event_now(daemon->loop, CLOCK_MONOTONIC, &now);

	if (err >= 0)
		err = sd_event_source_get_time(daemon->audit, &planned);
	if (err < 0 || planned < now + delay_usec)
		return err;
	return timer_start(daemon->audit, delay_usec);
}

static int retry_later(struct daemon *daemon)
{
	uint64_t delay_usec;

	if (daemon->retry_usec > RETRY_LAST_USEC)
		return 0;
	delay_usec = daemon_allowed_usec(daemon, daemon->retry_usec);
	daemon->retry_usec *= 2;
	return timer_start(daemon->settle, delay_usec);
}

/*
 * What it took is charged, unless groups were attached: that takes long, happens once for each, and
 * must not put off the changes of others.
 */
static int update(struct daemon *daemon)
{
	uint64_t start_ns = clock_process_ns();
	bool settled;

	keeper_set_restless(daemon->keeper, daemon->churn.bites);
	settled = keeper_update(daemon->keeper);
	if (!keeper_has_attached(daemon->keeper))
		churn_spend(&daemon->churn, clock_now_ns(), clock_process_ns() - start_ns);
	notify_status(daemon);
	if (settled || keeper_has_attached(daemon->keeper))
		daemon->retry_usec = RETRY_USEC;
	if (!settled && !timer_is_running(daemon->settle))
		retry_later(daemon);
	/* Which queues there are is known anew, so all of them are looked at. */
	timer_start(daemon->queues, 0);
	return keeper_wants_audit(daemon->keeper) ? audit_soon(daemon) : 0;
}

static int on_settle(sd_event_source *source, uint64_t usec, void *argument)
{
	struct daemon *daemon = argument;
	int err = daemon_read_waiting(daemon);

	(void)source;
	(void)usec;
	if (err >= 0)
		err = update(daemon);
	return err < 0 ? err : timer_start(daemon->check, CHECK_USEC);
}

static int on_check(sd_event_source *source, uint64_t usec, void *argument)
{
	struct daemon *daemon = argument;
	uint64_t delay_usec = daemon_allowed_usec(daemon, 0);

	(void)usec;
	return delay_usec ? timer_start(source, delay_usec) : update(daemon);
}

static int on_look(sd_event_source *source, uint64_t usec, void *argument)
{
	struct daemon *daemon = argument;
	int err = 0;

	(void)usec;
	switch (keeper_look(daemon->keeper)) {
	case WATCH_NOTHING:
		if (keeper_has_outdated(daemon->keeper))
			err = update(daemon);
		break;
	case WATCH_PINS:
		keeper_reopen(daemon->keeper);
		err = daemon_open_reader(daemon);
		if (err >= 0)
			err = update(daemon);
		break;
	case WATCH_PROGRAM:
		err = update(daemon);
		break;
	}
	/* What failed is tried at the next look: a timer whose handler fails would never run again. */
	if (err >= 0 && !daemon->readable)
		err = daemon_open_reader(daemon);
	if (err < 0)
		log_line(LOG_PRIORITY_ERROR, "cannot follow the events: %s", strerror(-err));
	return timer_start(source, LOOK_USEC);
}

static int on_queues(sd_event_source *source, uint64_t usec, void *argument)
{
	struct daemon *daemon = argument;
	uint64_t delay_usec = keeper_look_at_queues(daemon->keeper);

	(void)usec;
	if (keeper_wants_audit(daemon->keeper))
		audit_soon(daemon);
	return delay_usec ? timer_start(source, delay_usec) : 0;
}

static int on_audit(sd_event_source *source, uint64_t usec, void *argument)
{
	struct daemon *daemon = argument;
	uint64_t start_ns, delay_usec = AUDIT_USEC;
	int err = 0;

	(void)usec;
	/* A listener can change hands without any event: first whose it is, then what that holds. */
	if (!keeper_is_auditing(daemon->keeper)) {
		err = update(daemon);
		daemon->audit_usec = 0;
	}
	start_ns = clock_process_ns();
	if (keeper_audit(daemon->keeper))
		delay_usec = AUDIT_PAUSE_MS * 1000;
	daemon->audit_usec += (clock_process_ns() - start_ns) / 1000;
	if (!keeper_is_auditing(daemon->keeper) && keeper_wants_audit(daemon->keeper))
		delay_usec = audit_soon_usec(daemon);
	if (err < 0)
		log_line(LOG_PRIORITY_ERROR, "cannot plan the next look: %s", strerror(-err));
	/* Loading programs takes megabytes for a moment, which the allocator would keep. */
	malloc_trim(0);
	return timer_start(source, delay_usec);
}

/* Type=notify-reload of systemd wants to know when it began. */
static int reload(struct daemon *daemon)
{
	struct failure failure = {};
	int err;

	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_now_ns() / 1000);
	if (keeper_reload(daemon->keeper, &failure))
		log_line(LOG_PRIORITY_ERROR, "%s", failure.message);
	err = daemon_open_reader(daemon);
	if (err >= 0)
		err = update(daemon);
	sd_notify(0, "READY=1");
	if (err < 0)
		log_line(LOG_PRIORITY_ERROR, "cannot follow the events: %s", strerror(-err));
	return timer_start(daemon->check, CHECK_USEC);
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *argument)
{
	struct daemon *daemon = argument;

	if (info->ssi_signo == SIGHUP)
		return reload(daemon);
	return sd_event_exit(sd_event_source_get_event(source), 0);
}

static int add_timers(struct daemon *daemon)
{
	int err = timer_new(daemon->loop, EXACT_USEC, on_settle, daemon, &daemon->settle);

	if (err >= 0)
		err = timer_new(daemon->loop, EXACT_USEC, on_check, daemon, &daemon->check);
	if (err >= 0)
		err = timer_new(daemon->loop, LATE_USEC, on_look, daemon, &daemon->look);
	if (err >= 0)
		err = timer_new(daemon->loop, LATE_USEC, on_audit, daemon, &daemon->audit);
	if (err >= 0)
		err = timer_new(daemon->loop, EXACT_USEC, on_queues, daemon, &daemon->queues);
	return err;
}

static int build_loop(struct daemon *daemon)
{
	int err = sd_event_default(&daemon->loop);

	if (err >= 0)
		err = signals_add(daemon->loop, on_signal, daemon);
	if (err >= 0)
		err = add_timers(daemon);
	if (err >= 0)
		err = daemon_open_reader(daemon);
	if (err >= 0 && daemon->metrics)
		err = metrics_serve(daemon->metrics, daemon->loop, daemon->keeper);
	if (err >= 0)
		err = sd_event_set_watchdog(daemon->loop, true);
	return err < 0 ? err : 0;
}

/* Everything is looked at once more soon, and the timers begin. */
static void start(struct daemon *daemon)
{
	update(daemon);
	timer_start(daemon->check, CHECK_USEC);
	timer_start(daemon->look, LOOK_USEC);
	timer_start(daemon->audit, AUDIT_SOON_USEC);
}

int daemon_run(const struct daemon_options *options, struct failure *failure)
{
	struct daemon daemon CLEANUP(daemon_done) = { .retry_usec = RETRY_USEC };
	int err;

	err = signals_block();
	if (err)
		return failure_set(failure, EXIT_FAILED, -err, "cannot block signals: %s",
				   strerror(-err));
	/* First: a port may need a right, and one that is taken must not leave anything attached. */
	if (options->metrics)
		err = metrics_new(options, &daemon.metrics, failure);
	if (!err)
		err = privileges_drop(failure);
	if (!err)
		err = keeper_new(options, &daemon.keeper, failure);
	if (err)
		return err;
	err = build_loop(&daemon);
	if (err)
		return failure_set(failure, EXIT_FAILED, -err, "cannot build the event loop: %s",
				   strerror(-err));
	churn_init(&daemon.churn, clock_now_ns());
	start(&daemon);
	sd_notify(0, "READY=1");
	err = sd_event_loop(daemon.loop);
	sd_notify(0, "STOPPING=1");
	if (err < 0)
		return failure_set(failure, EXIT_FAILED, -err, "the event loop failed: %s",
				   strerror(-err));
	return options->detach_on_exit ? keeper_detach(daemon.keeper, failure) : 0;
}
