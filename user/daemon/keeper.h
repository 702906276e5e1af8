/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which groups the daemon keeps, and one pass of bringing all of them up to date. No event loop here.
 */
#ifndef SOCKSTEER_DAEMON_KEEPER_H
#define SOCKSTEER_DAEMON_KEEPER_H

#include "daemon/churn.h"
#include "daemon/daemon.h"
#include "daemon/watch.h"

struct keeper;

/*
 * Takes the daemon's lock, loads what every pass needs, and makes sure that tracking is pinned.
 * The file is read first, so that a bad one is said to anybody. options is borrowed for the keeper's
 * life. Fails with a message.
 */
int keeper_new(const struct daemon_options *options, struct keeper **ret_keeper,
	       struct failure *failure);
void keeper_free(struct keeper *keeper);

/* The ring buffer's descriptor, -1 while nothing is pinned. Borrowed until keeper_reopen(). */
int keeper_get_events(const struct keeper *keeper);

/* What every pass looks with. Borrowed. */
struct inspector *keeper_get_inspector(const struct keeper *keeper);

/* True if the event can concern a group that is kept: then an update is due. */
bool keeper_take_event(struct keeper *keeper, const struct event *event);

/* Logs that its updates are put off, because listeners come and go all the time. */
void keeper_remark_churn(struct keeper *keeper, const struct churn *churn);

/* While that is so, updates do not log who came and who went. */
void keeper_set_restless(struct keeper *keeper, bool restless);

/*
 * Scans, attaches what is not steered yet, and refreshes the rest. Logs what changed, and failures.
 * False if a group has members that the scan did not find: normal while a worker starts, so the caller
 * comes back soon.
 */
bool keeper_update(struct keeper *keeper);

/* True if the last update attached a group: then there may be more of them, and no reason to wait. */
bool keeper_has_attached(const struct keeper *keeper);

/* True if a group has been away for so long that an update removes its pins. */
bool keeper_has_outdated(const struct keeper *keeper);

/*
 * Looks at the queues of the groups in which something waits, and rescues from stuck listeners where the
 * settings say so. The time until the next look, in microseconds; 0 when nothing waits, until an
 * EVENT_ARRIVAL or an update.
 */
uint64_t keeper_look_at_queues(struct keeper *keeper);

/* Takes an EVENT_ARRIVAL. The time until the first look at its group, in microseconds. */
uint64_t keeper_take_arrival(struct keeper *keeper, const struct event *event);

/* Logs an EVENT_STUCK or EVENT_RECOVERED; so many of them in a minute, and no more. */
void keeper_report_hang(struct keeper *keeper, const struct event *event);

/* What changed without an event: see daemon/watch.h. */
enum watch_change keeper_look(struct keeper *keeper);

/* After WATCH_PINS: lets go of tables that are not pinned any more, and opens those that are. */
void keeper_reopen(struct keeper *keeper);

/*
 * Reads the file anew and ends steering of what is no longer in it; takes groups back that were
 * detached by hand, and pins the tables again if they are gone. The next update does the rest. With
 * a bad file nothing changes.
 */
int keeper_reload(struct keeper *keeper, struct failure *failure);

/* True if listeners joined or left since the last audit: then connections may have moved. */
bool keeper_wants_audit(const struct keeper *keeper);

/*
 * Compares the counters with the sockets, mends them, and logs what was mended. True if it has to go
 * on, with the next call after AUDIT_PAUSE_MS; until then other calls are welcome.
 */
bool keeper_audit(struct keeper *keeper);
bool keeper_is_auditing(const struct keeper *keeper);

size_t keeper_nr_steered(const struct keeper *keeper);

/*
 * Looks how many groups that are kept are steered at this moment, and how many listen and should be
 * but are not. Not missed are a single listener, of which there is nothing to steer, and groups that
 * were detached by hand.
 */
int keeper_count(struct keeper *keeper, size_t *ret_nr_steered, size_t *ret_nr_missed,
		 struct failure *failure);

/* Ends steering of all kept groups. */
int keeper_detach(struct keeper *keeper, struct failure *failure);

#endif
