/* SPDX-License-Identifier: GPL-2.0-only */
#include "daemon/guard.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "kernel/values.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

/*
 * Looks come this often within a group's stuck-after, so that a hang is noticed at most that part later;
 * and within these limits.
 */
#define LOOKS_PER_STUCK_AFTER 4
#define MIN_DELAY_USEC 5000
#define MAX_DELAY_USEC 100000

/*
 * How long a group is left alone in which a rescue failed: twice as long each time, up to a limit, since
 * most of what makes one fail, such as a group whose other workers all drain, lasts.
 */
#define REST_NS 1000000000ull
#define MAX_REST_NS 64000000000ull

/* Rescues of one look: each takes milliseconds, in which the daemon does nothing else. */
#define MAX_RESCUES 4

/*
 * A SYN finds the alarm armed, and reports nothing, a moment before the kernel adds it to the handshakes that
 * a look would see. So a look that finds nothing leaves the alarm off, and a second one decides.
 */
#define QUIET_LOOKS 2

struct guarded {
	char *folder; /* owned */
	struct group_maps maps; /* owned; what a look needs and no more */
	struct alarm *alarm; /* mapped */
	uint64_t delay_usec; /* between two looks */
	uint64_t rest_until_ns; /* CLOCK_MONOTONIC; no rescue before */
	uint64_t rest_ns; /* the next rest */
	uint32_t quiet; /* looks in a row that found nothing; from QUIET_LOOKS on none is taken */
	/* Which group it is. */
	uint32_t netns;
	uint32_t family;
	uint32_t port;
};

struct guard {
	struct guarded *groups; /* owned */
	size_t nr_groups;
};

static size_t alarm_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static void guarded_done(struct guarded *group)
{
	if (group->alarm)
		munmap(group->alarm, alarm_bytes());
	group_maps_done(&group->maps);
	free(group->folder);
}

static void forget_groups(struct guard *guard)
{
	size_t i;

	for (i = 0; i < guard->nr_groups; i++)
		guarded_done(&guard->groups[i]);
	free(guard->groups);
	guard->groups = NULL;
	guard->nr_groups = 0;
}

int guard_new(struct guard **ret_guard)
{
	*ret_guard = calloc(1, sizeof(**ret_guard));
	return *ret_guard ? 0 : -ENOMEM;
}

void guard_free(struct guard *guard)
{
	if (guard)
		forget_groups(guard);
	free(guard);
}

static uint64_t delay_of(const struct settings *settings)
{
	uint64_t delay_usec = settings->stuck_after_ns / 1000 / LOOKS_PER_STUCK_AFTER;

	if (delay_usec < MIN_DELAY_USEC)
		return MIN_DELAY_USEC;
	return delay_usec < MAX_DELAY_USEC ? delay_usec : MAX_DELAY_USEC;
}

/* A copy of a descriptor, so that a group that is let go of by others stays open here. */
static int share(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

static int guarded_init(struct guarded *group, const struct pinned_group *pinned)
{
	void *alarm;

	*group = (struct guarded){
		.folder = strdup(pinned->folder),
		.maps = GROUP_MAPS_NONE,
		.delay_usec = delay_of(&pinned->settings),
		.rest_ns = REST_NS,
		.netns = pinned->settings.netns,
		.family = pinned->settings.family,
		.port = pinned->settings.port,
	};
	group->maps.members = share(pinned->maps.members);
	group->maps.settings = share(pinned->maps.settings);
	group->maps.survey = share(pinned->maps.survey);
	if (!group->folder || group->maps.members < 0 || group->maps.settings < 0 ||
	    group->maps.survey < 0)
		return -ENOMEM;
	alarm = mmap(NULL, alarm_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, pinned->maps.alarms,
		     0);
	if (alarm == MAP_FAILED)
		return -errno;
	group->alarm = alarm;
	return 0;
}

/* A group that rests goes on resting when all groups are set anew. */
static void keep_rest(struct guarded *group, const struct guard *before)
{
	size_t i;

	for (i = 0; i < before->nr_groups; i++) {
		if (strcmp(before->groups[i].folder, group->folder))
			continue;
		group->rest_until_ns = before->groups[i].rest_until_ns;
		group->rest_ns = before->groups[i].rest_ns;
	}
}

int guard_set_groups(struct guard *guard, const struct pinned *pinned)
{
	struct guard before = *guard;
	size_t i;
	int err = 0;

	guard->nr_groups = 0;
	guard->groups = calloc(pinned->nr_groups + 1, sizeof(*guard->groups));
	for (i = 0; guard->groups && i < pinned->nr_groups && !err; i++) {
		struct guarded *group = &guard->groups[guard->nr_groups];

		if (!pinned->groups[i].whole)
			continue;
		err = guarded_init(group, &pinned->groups[i]);
		if (err) {
			guarded_done(group);
			continue;
		}
		keep_rest(group, &before);
		guard->nr_groups++;
	}
	forget_groups(&before);
	return guard->groups ? err : -ENOMEM;
}

/*
 * One that was found stuck just now waits for the next look, which its event brings about at once: so the
 * log tells the hang before the rescue. And one that is tried has its time to accept, which steer knows.
 */
static bool is_for_rescue(const struct settings *settings, const struct member *member,
			  uint64_t look_ns)
{
	if (!member->cookie || !member->stuck_ns || !member->head || member->stuck_ns >= look_ns ||
	    member->head_since_ns + settings->stuck_after_ns > look_ns ||
	    (member->trials & MEMBER_ON_TRIAL))
		return false;
	return settings->rescue == RESCUE_STUCK_UNATTENDED ||
	       (settings->rescue == RESCUE_STUCK && member->state != STATE_UNATTENDED);
}

static bool is_healthy(const struct member *member)
{
	return member->cookie && !member->stuck_ns && member->state != STATE_UNATTENDED;
}

/* Where all hang there is nobody to rescue them: not worth a try. */
static bool has_healthy(const struct member *members, uint32_t nr_slots)
{
	uint32_t slot;

	for (slot = 0; slot < nr_slots; slot++)
		if (is_healthy(&members[slot]))
			return true;
	return false;
}

static void take_rest(struct guarded *group)
{
	group->rest_until_ns = clock_now_ns() + group->rest_ns;
	if (group->rest_ns < MAX_REST_NS)
		group->rest_ns *= 2;
}

/* Hands on the stuck listeners of a group that are to be rescued. */
static void call_rescue(struct guarded *group, const struct settings *settings, uint64_t look_ns,
			guard_handler handler, void *argument)
{
	uint32_t nr_slots = settings->nr_slots < MAX_SLOTS ? settings->nr_slots : MAX_SLOTS, slot;
	struct member *members CLEANUP(cleanup_free) = calloc(MAX_SLOTS, sizeof(*members));
	uint32_t nr = 0;
	int done;

	if (!members || values_read(group->maps.members, members, sizeof(*members), MAX_SLOTS) ||
	    !has_healthy(members, nr_slots))
		return;
	for (slot = 0; slot < nr_slots && nr < MAX_RESCUES; slot++) {
		if (!is_for_rescue(settings, &members[slot], look_ns))
			continue;
		done = handler(group->folder, slot, &members[slot], argument);
		if (done < 0) {
			take_rest(group);
			return;
		}
		/* One that has had all its rescues of a minute is not to keep others from theirs. */
		nr += (uint32_t)done;
		if (done)
			group->rest_ns = REST_NS;
	}
}

static void look_at(struct guarded *group, guard_handler handler, void *argument)
{
	uint64_t look_ns = clock_now_ns();
	struct settings settings;
	uint32_t result;

	/* Disarmed first: what arrives during the look arms it again, and is reported. */
	__atomic_store_n(&group->alarm->armed, 0, __ATOMIC_SEQ_CST);
	group->quiet++;
	if (group_maps_survey(&group->maps, &result) || !result)
		return;
	group->quiet = 0;
	if (value_read(group->maps.settings, 0, &settings))
		return;
	group->delay_usec = delay_of(&settings);
	if ((result & SURVEY_STUCK) && settings.rescue != RESCUE_OFF &&
	    look_ns >= group->rest_until_ns)
		call_rescue(group, &settings, look_ns, handler, argument);
}

/* While looks are taken, nobody need report what arrives. */
static void arm(struct guarded *group)
{
	__atomic_store_n(&group->alarm->armed, 1, __ATOMIC_SEQ_CST);
}

uint64_t guard_look(struct guard *guard, guard_handler handler, void *argument)
{
	uint64_t delay_usec = 0;
	size_t i;

	for (i = 0; i < guard->nr_groups; i++) {
		struct guarded *group = &guard->groups[i];

		if (group->quiet < QUIET_LOOKS)
			look_at(group, handler, argument);
		if (group->quiet >= QUIET_LOOKS)
			continue;
		if (!group->quiet)
			arm(group);
		if (!delay_usec || group->delay_usec < delay_usec)
			delay_usec = group->delay_usec;
	}
	return delay_usec;
}

void guard_note_arrival(struct guard *guard, const struct event *event)
{
	size_t i;

	for (i = 0; i < guard->nr_groups; i++) {
		struct guarded *group = &guard->groups[i];

		if (group->netns == event->netns && group->family == event->family &&
		    group->port == event->port)
			group->quiet = 0;
	}
}

uint64_t guard_delay(const struct guard *guard)
{
	uint64_t delay_usec = MAX_DELAY_USEC;
	size_t i;

	for (i = 0; i < guard->nr_groups; i++)
		if (guard->groups[i].delay_usec < delay_usec)
			delay_usec = guard->groups[i].delay_usec;
	return delay_usec;
}
