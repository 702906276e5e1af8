/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Noticing that a worker hangs, without tracing it: each look at a listener compares the first
 * connection in its queue with the one that the last look saw. What is found lies in its row of
 * members. Whoever looks does this: steer for each candidate whose live state it reads, and survey for
 * all of them.
 *
 * Several CPUs may look at one listener at once and write what they saw over each other. They saw it
 * within microseconds, so the times are off by as much; what counts, becoming stuck and recovering, is
 * one compare-and-swap each.
 */
#ifndef SOCKSTEER_HANG_H
#define SOCKSTEER_HANG_H

#include "arrays.h"
#include "group_maps.h"
#include "listener.h"
#include "maps.h"
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

/*
 * What is certain of the time between two looks that both found a worker away: it may have waited in
 * between. After the second time, they have nothing to do with each other.
 */
#define AWAY_CERTAIN_NS 5000000
#define AWAY_BREAK_NS 1000000000

/*
 * A worker that comes back by itself before this many times stuck-after was slow, and did not hang. From
 * then on it is given twice the time that it took, so that slow workers are not chased around. The memory
 * of it fades by a part with each connection that is accepted faster, to half after 44 of them: a worker
 * that is slow now and then is met again while it lasts.
 */
#define SLOW_FACTOR 10
#define PACE_FACTOR 2
#define PACE_FADE_SHIFT 6

/*
 * A stuck worker whose queue was emptied, and that is not seen waiting, may be well and just busy. So it is
 * tried: it may be chosen, and is well when it accepts in time. The first trial comes this long after it
 * was found stuck, each of the next ones after a pause of twice as long, up to a limit; and not when there
 * are no rescues left for what the trial may leave in the queue.
 */
#define TRIAL_NS 1000000000ull
#define MAX_TRIAL_SHIFT 5

static __always_inline __u64 time_since(__u64 now, __u64 then)
{
	/* Another CPU may have written a time that is ahead of ours. */
	return now > then ? now - then : 0;
}

/* Nobody may be reading: who is told late finds all of it in the row. */
static __noinline void report_member(const struct settings *current, const struct member *member,
				     __u32 kind, __u64 now)
{
	struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event)
		return;
	event->kind = kind;
	event->netns = current->netns;
	event->family = current->family;
	event->port = current->port;
	event->cookie = member ? member->cookie : 0;
	event->time_ns = now;
	bpf_ringbuf_submit(event, 0);
}

static __always_inline void forget_away(struct member *member)
{
	if (!member->away_seen_ns)
		return;
	member->away_seen_ns = 0;
	member->away_ns = 0;
}

static __always_inline void note_away(struct member *member, __u64 now)
{
	__u64 gap = time_since(now, member->away_seen_ns);

	if (!member->away_seen_ns || gap > AWAY_BREAK_NS) {
		member->away_since_ns = now;
		member->away_ns = 0;
	} else {
		member->away_ns += gap < AWAY_CERTAIN_NS ? gap : AWAY_CERTAIN_NS;
	}
	member->away_seen_ns = now;
}

/* A worker took at least this long to accept. */
static __always_inline void note_pace(struct member *member, const struct settings *current,
				      __u64 took)
{
	__u64 pace = member->pace_ns - (member->pace_ns >> PACE_FADE_SHIFT);

	if (took > SLOW_FACTOR * current->stuck_after_ns)
		return;
	pace = took > pace ? took : pace;
	if (pace != member->pace_ns)
		member->pace_ns = pace;
}

static __always_inline bool is_overdue(const struct member *member, const struct settings *current,
				       __u64 now)
{
	__u64 slowest = SLOW_FACTOR * current->stuck_after_ns;
	/* The setting may be lower now than when the pace was learned. */
	__u64 pace = member->pace_ns < slowest ? member->pace_ns : slowest;
	__u64 patience = PACE_FACTOR * pace;

	if (patience < current->stuck_after_ns)
		patience = current->stuck_after_ns;
	return member->head && time_since(now, member->head_since_ns) >= patience;
}

static __always_inline void become_stuck(struct member *member, const struct settings *current,
					 __u64 now)
{
	if (__sync_val_compare_and_swap(&member->stuck_ns, 0, now))
		return;
	member->trials = 0;
	__sync_fetch_and_add(&member->nr_stuck, 1);
	report_member(current, member, EVENT_STUCK, now);
}

static __always_inline void ramp_up(struct member *member, __u64 now)
{
	const __u32 row = 0;
	struct alarm *alarm = bpf_map_lookup_elem(&alarms, &row);

	member->ramp_ns = now;
	if (alarm)
		alarm->last_ramp_ns = now;
}

/* It takes connections again, slowly at first: it is the emptiest, and all would go to it. */
static __always_inline void recover(struct member *member, const struct settings *current,
				    __u64 stuck_ns, __u64 now)
{
	if (__sync_val_compare_and_swap(&member->stuck_ns, stuck_ns, 0) != stuck_ns)
		return;
	member->trials = 0;
	ramp_up(member, now);
	report_member(current, member, EVENT_RECOVERED, now);
}

/*
 * head is what is accepted next now, and another one than at the last look. How long the one before had to
 * wait is certain only up to the last look that found its worker away.
 */
static __always_inline void note_head(struct member *member, const struct settings *current,
				      __u64 head, __u64 now)
{
	__u64 stuck_ns = member->stuck_ns;
	bool was_accepted = member->head != 0;

	if (was_accepted)
		note_pace(member, current, time_since(member->away_seen_ns, member->head_since_ns));
	member->head = head;
	member->head_since_ns = now;
	if (was_accepted && stuck_ns)
		recover(member, current, stuck_ns, now);
}

/* Each trial may need a rescue. The last of a minute is kept for what comes in by other ways. */
static __always_inline bool has_rescues_left(const struct member *member, __u64 now)
{
	return member->rescues_in_window + 1 < MAX_RESCUES_IN_WINDOW ||
	       time_since(now, member->rescue_window_ns) > RESCUE_WINDOW_NS;
}

/* A trial is due so long after the listener was found stuck, or after the trial before had failed. */
static __always_inline bool trial_is_due(const struct member *member, __u64 now)
{
	__u32 shift = member->trials < MAX_TRIAL_SHIFT ? member->trials : MAX_TRIAL_SHIFT;
	__u64 since = member->stuck_ns > member->ramp_ns ? member->stuck_ns : member->ramp_ns;

	return time_since(now, since) >= TRIAL_NS << shift && has_rescues_left(member, now);
}

/* Its queue was emptied, by a rescue. Does the worker live? */
static __always_inline void look_for_life(struct member *member, const struct settings *current,
					  __u32 state, __u64 now)
{
	__u64 stuck_ns = member->stuck_ns;
	__u32 trials = member->trials;

	if (state == STATE_IDLE) {
		note_pace(member, current, time_since(now, stuck_ns) + current->stuck_after_ns);
		recover(member, current, stuck_ns, now);
	} else if (!(trials & MEMBER_ON_TRIAL) && trial_is_due(member, now)) {
		if (trials < MEMBER_ON_TRIAL - 1)
			trials++;
		member->trials = trials | MEMBER_ON_TRIAL;
		ramp_up(member, now);
	}
}

static __always_inline void note_overdue(struct member *member, const struct settings *current,
					 __u64 now)
{
	if (!member->stuck_ns) {
		become_stuck(member, current, now);
	} else if (member->trials & MEMBER_ON_TRIAL) {
		member->trials &= ~MEMBER_ON_TRIAL;
		member->ramp_ns = now;
	}
}

static __always_inline bool member_is_stuck(const struct member *member)
{
	return member->stuck_ns && !(member->trials & MEMBER_ON_TRIAL);
}

static __always_inline bool is_away(__u32 state)
{
	return state == STATE_BUSY || state == STATE_UNATTENDED;
}

/*
 * One look at the listener in a slot, whose live state was just read. A listener that is shut meanwhile,
 * for a rescue, leaves its slot before the kernel takes its queue apart; what was read then is no sign of
 * life.
 */
__noinline int member_look(__u32 slot, __u64 sk, __u32 state, __u32 queued)
{
	struct member *member = bpf_map_lookup_elem(&members, &slot);
	const __u32 row = 0;
	struct settings *current = bpf_map_lookup_elem(&settings, &row);
	__u64 head = queued ? listener_queue_head(sk) : 0, now;

	if (!member || !current || slot_socket(slot) != sk)
		return 0;
	now = bpf_ktime_get_ns();
	if (member->state != state)
		member->state = state;
	member->look_tick = (__u32)bpf_jiffies64();
	if (head != member->head)
		note_head(member, current, head, now);
	else if (member->stuck_ns && !head)
		look_for_life(member, current, state, now);
	else if (is_overdue(member, current, now))
		note_overdue(member, current, now);
	if (is_away(state))
		note_away(member, now);
	else
		forget_away(member);
	return 0;
}

/*
 * The same for steer, which may come by many thousand times a second: a listener that is waited for and
 * has nothing queued needs no look unless something was remembered of it, and nobody needs two looks in
 * one tick, some milliseconds. The helper for that is not even a call, where programs are compiled.
 */
static __always_inline void member_glance(__u32 slot, __u64 sk, struct member *member, __u32 state,
					  __u32 queued)
{
	bool is_quiet = !queued && !is_away(state);

	if (is_quiet)
		forget_away(member);
	if (is_quiet && !member->head && !member->stuck_ns)
		return;
	if (member->look_tick != (__u32)bpf_jiffies64())
		member_look(slot, sk, state, queued);
}

#endif
