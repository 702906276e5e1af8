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

/* How long a group is left alone in which a rescue failed. */
#define REST_NS 1000000000

struct guarded {
	char *folder; /* owned */
	struct group_maps maps; /* owned; what a look needs and no more */
	struct alarm *alarm; /* mapped; NULL if that failed: then every look is taken */
	uint64_t delay_usec; /* between two looks */
	uint64_t rest_until_ns; /* CLOCK_MONOTONIC; no rescue before */
	bool wanted; /* the first look, or something was found by the last one */
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
		.wanted = true,
	};
	group->maps.members = share(pinned->maps.members);
	group->maps.settings = share(pinned->maps.settings);
	group->maps.survey = share(pinned->maps.survey);
	if (!group->folder || group->maps.members < 0 || group->maps.settings < 0 ||
	    group->maps.survey < 0)
		return -ENOMEM;
	alarm = mmap(NULL, alarm_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, pinned->maps.alarms,
		     0);
	if (alarm != MAP_FAILED)
		group->alarm = alarm;
	return 0;
}

int guard_set_groups(struct guard *guard, const struct pinned *pinned)
{
	size_t i;

	forget_groups(guard);
	guard->groups = calloc(pinned->nr_groups + 1, sizeof(*guard->groups));
	if (!guard->groups)
		return -ENOMEM;
	for (i = 0; i < pinned->nr_groups; i++) {
		struct guarded *group = &guard->groups[guard->nr_groups];

		if (!pinned->groups[i].whole)
			continue;
		if (guarded_init(group, &pinned->groups[i])) {
			guarded_done(group);
			return -ENOMEM;
		}
		guard->nr_groups++;
	}
	return 0;
}

/*
 * One that was found stuck just now waits for the next look, which its event brings about at once: so the
 * log tells the hang before the rescue. And one that is tried has its time to accept.
 */
static bool is_for_rescue(const struct settings *settings, const struct member *member,
			  uint64_t look_ns)
{
	if (!member->cookie || !member->stuck_ns || !member->head || member->stuck_ns >= look_ns ||
	    member->head_since_ns + settings->stuck_after_ns > look_ns)
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

/* Hands on the stuck listeners of a group that are to be rescued. */
static void call_rescue(struct guarded *group, const struct settings *settings, uint64_t look_ns,
			guard_handler handler, void *argument)
{
	uint32_t nr_slots = settings->nr_slots < MAX_SLOTS ? settings->nr_slots : MAX_SLOTS, slot;
	struct member *members CLEANUP(cleanup_free) = calloc(MAX_SLOTS, sizeof(*members));

	if (!members || values_read(group->maps.members, members, sizeof(*members), MAX_SLOTS) ||
	    !has_healthy(members, nr_slots))
		return;
	for (slot = 0; slot < nr_slots; slot++) {
		if (!is_for_rescue(settings, &members[slot], look_ns))
			continue;
		if (!handler(group->folder, slot, &members[slot], argument))
			group->rest_until_ns = clock_now_ns() + REST_NS;
	}
}

/* Disarmed first: what arrives during the look arms it again, and is reported. */
static bool is_armed(struct guarded *group)
{
	bool armed = group->wanted || !group->alarm || group->alarm->armed;

	if (group->alarm)
		__atomic_store_n(&group->alarm->armed, 0, __ATOMIC_SEQ_CST);
	return armed;
}

static void look_at(struct guarded *group, guard_handler handler, void *argument)
{
	uint64_t look_ns = clock_now_ns();
	struct settings settings;
	uint32_t result;

	group->wanted = false;
	if (group_maps_survey(&group->maps, &result) || !result)
		return;
	group->wanted = true;
	if (group->alarm)
		group->alarm->armed = 1;
	if (value_read(group->maps.settings, 0, &settings))
		return;
	group->delay_usec = delay_of(&settings);
	if ((result & SURVEY_STUCK) && settings.rescue != RESCUE_OFF &&
	    look_ns >= group->rest_until_ns)
		call_rescue(group, &settings, look_ns, handler, argument);
}

uint64_t guard_look(struct guard *guard, guard_handler handler, void *argument)
{
	uint64_t delay_usec = 0;
	size_t i;

	for (i = 0; i < guard->nr_groups; i++) {
		struct guarded *group = &guard->groups[i];

		if (is_armed(group))
			look_at(group, handler, argument);
		if (group->wanted && (!delay_usec || group->delay_usec < delay_usec))
			delay_usec = group->delay_usec;
	}
	return delay_usec;
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
