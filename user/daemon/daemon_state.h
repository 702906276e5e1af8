/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a daemon is made of, for the files that do its jobs: daemon.c its life and its timers, arrivals.c
 * the events that it reads. Everybody else has daemon.h.
 */
#ifndef SOCKSTEER_DAEMON_DAEMON_STATE_H
#define SOCKSTEER_DAEMON_DAEMON_STATE_H

#include "daemon/churn.h"
#include "daemon/keeper.h"
#include "kernel/event_reader.h"

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

/*
 * Changes come in bursts: a restart opens and closes many listeners at once. The first change of a
 * burst is acted upon after SETTLE_USEC, so that its companions are in the same scan; and once more
 * after CHECK_USEC, when the new workers watch their listeners.
 */
#define SETTLE_USEC 1000
#define CHECK_USEC 100000

/*
 * A member that no scan finds, because its worker is just starting, is looked for again after this, and
 * each time after twice as long; what is hidden for longer than the last is left to the next event.
 */
#define RETRY_USEC 4000
#define RETRY_LAST_USEC 4000000

struct metrics;

struct daemon {
	struct keeper *keeper; /* owned */
	struct event_reader *reader; /* owned; NULL while nothing is pinned */
	struct metrics *metrics; /* owned; NULL without */
	sd_event *loop; /* owned */
	sd_event_source *readable; /* owned, of the reader */
	sd_event_source *settle; /* owned timers */
	sd_event_source *check;
	sd_event_source *look;
	sd_event_source *audit;
	sd_event_source *queues;
	uint64_t retry_usec; /* the next retry's delay */
	uint64_t audit_usec; /* processor time that the last audit took, all its steps */
	struct churn churn;
	/* Of the events that are being read. */
	bool changed; /* a listener of concern came or went */
	uint64_t queues_usec; /* when to look at the queues, as something arrived; 0 if nothing did */
	bool stuck; /* a listener is stuck */
};

/*
 * Follows the events of the tables that are pinned now; of none, if there are none. -errno, then it is to be
 * tried again.
 */
int daemon_open_reader(struct daemon *daemon);

/* Reads the events that had to wait: the update that comes now is for all of them. */
int daemon_read_waiting(struct daemon *daemon);

/* The delay, or longer if the allowance for changes is spent. */
uint64_t daemon_allowed_usec(struct daemon *daemon, uint64_t delay_usec);

#endif
