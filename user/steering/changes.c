/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/changes.h"
#include "steering/names.h"

#include <stdio.h>
#include <string.h>

/* Where the changes go, and when they were seen. */
struct report {
	uint64_t time_ns;
	change_handler handler;
	void *argument;
};

static const struct status_group *find_group(const struct status *status,
					     const struct status_group *group)
{
	size_t i;

	for (i = 0; i < status->nr_groups; i++)
		if (status->groups[i].netns == group->netns &&
		    !strcmp(status->groups[i].name, group->name))
			return &status->groups[i];
	return NULL;
}

static const struct status_listener *find_in_group(const struct status_group *group,
						   uint64_t cookie)
{
	size_t i;

	for (i = 0; i < group->nr_listeners; i++)
		if (group->listeners[i].cookie == cookie)
			return &group->listeners[i];
	return NULL;
}

const struct status_listener *status_find_listener(const struct status *status, uint64_t cookie)
{
	const struct status_listener *found = NULL;
	size_t i;

	for (i = 0; i < status->nr_groups && !found; i++)
		found = find_in_group(&status->groups[i], cookie);
	return found;
}

static struct change change_of_group(const struct report *report, enum change_kind kind,
				     const struct status_group *group)
{
	struct change change = {
		.kind = kind,
		.time_ns = report->time_ns,
		.netns = group->netns,
	};

	memcpy(change.group, group->name, sizeof(change.group));
	return change;
}

static void report_group(const struct report *report, enum change_kind kind,
			 const struct status_group *group)
{
	struct change change = change_of_group(report, kind, group);

	if (kind == CHANGE_STEERED)
		snprintf(change.to, sizeof(change.to), "%s", policy_name(group->policy));
	report->handler(&change, report->argument);
}

static struct change change_of_listener(const struct report *report, enum change_kind kind,
					const struct status_group *group,
					const struct status_listener *listener)
{
	struct change change = change_of_group(report, kind, group);

	change.cookie = listener->cookie;
	change.has_slot = true;
	change.slot = listener->slot;
	change.pid = listener->pid;
	memcpy(change.comm, listener->comm, sizeof(change.comm));
	return change;
}

static void report_listener(const struct report *report, enum change_kind kind,
			    const struct status_group *group,
			    const struct status_listener *listener)
{
	struct change change = change_of_listener(report, kind, group, listener);

	report->handler(&change, report->argument);
}

static void report_weight(const struct report *report, const struct status_group *group,
			  const struct status_listener *before, const struct status_listener *after)
{
	struct change change = change_of_listener(report, CHANGE_WEIGHT, group, after);

	snprintf(change.from, sizeof(change.from), "%u", before->weight);
	snprintf(change.to, sizeof(change.to), "%u", after->weight);
	report->handler(&change, report->argument);
}

static void report_count(const struct report *report, enum change_kind kind,
			 const struct status_group *group, const struct status_listener *listener,
			 uint64_t count)
{
	struct change change = change_of_listener(report, kind, group, listener);

	change.count = count;
	report->handler(&change, report->argument);
}

/* One that was stuck and is well again between two looks is told of too. */
static void compare_hangs(const struct report *report, const struct status_group *group,
			  const struct status_listener *before, const struct status_listener *after)
{
	bool is_stuck = after->state == STATE_STUCK;
	bool was_stuck = before->state == STATE_STUCK;

	if (after->nr_stuck > before->nr_stuck)
		report_count(report, CHANGE_STUCK, group, after, after->queued);
	if (after->nr_rescues > before->nr_rescues)
		report_count(report, CHANGE_RESCUED, group, after,
			     after->nr_rescues - before->nr_rescues);
	if (!is_stuck && (was_stuck || after->nr_stuck > before->nr_stuck))
		report_listener(report, CHANGE_RECOVERED, group, after);
}

static void compare_listener(const struct report *report, const struct status_group *group,
			     const struct status_listener *before,
			     const struct status_listener *after)
{
	if (!before || before->slot != after->slot)
		report_listener(report, CHANGE_PLACED, group, after);
	if (before ? before->draining != after->draining : after->draining)
		report_listener(report, after->draining ? CHANGE_DRAINED : CHANGE_RESUMED, group,
				after);
	if (before && before->weight != after->weight)
		report_weight(report, group, before, after);
	if (before)
		compare_hangs(report, group, before, after);
}

static void compare_settings(const struct report *report, const struct status_group *before,
			     const struct status_group *after)
{
	const struct setting *setting;

	for (setting = settings_keys; setting->name; setting++) {
		struct change change = change_of_group(report, CHANGE_SETTING, after);

		change.setting = setting->name;
		setting->print(&before->settings, change.from);
		setting->print(&after->settings, change.to);
		if (strcmp(change.from, change.to))
			report->handler(&change, report->argument);
	}
}

/* False if it has no listener that is still open. */
static bool group_is_open(const struct status_group *group)
{
	size_t i;

	for (i = 0; i < group->nr_listeners; i++)
		if (!group->listeners[i].gone)
			return true;
	return group->nr_missing > 0;
}

/*
 * before is NULL for a group that was not there. One that is new and not steered is an attach that has
 * not finished, or was over before it was seen: its turn comes when it is steered.
 */
static void compare_group(const struct report *report, const struct status_group *before,
			  const struct status_group *after)
{
	bool is_new = !before || before->attached_ns != after->attached_ns;
	size_t i;

	if (before && is_new)
		report_group(report, CHANGE_DETACHED, before);
	if (after->steered && (is_new || !before->steered))
		report_group(report, CHANGE_STEERED, after);
	if (before && !is_new)
		compare_settings(report, before, after);
	if (before && !is_new && before->steered && !after->steered)
		report_group(report, group_is_open(after) ? CHANGE_REPLACED : CHANGE_CLOSED, after);
	for (i = 0; i < after->nr_listeners; i++)
		compare_listener(report, after,
				 is_new ? NULL : find_in_group(before, after->listeners[i].cookie),
				 &after->listeners[i]);
}

static void compare_audits(const struct report *report, const struct audits *before,
			   const struct audits *after)
{
	struct change change = { .kind = CHANGE_REPAIRED, .time_ns = report->time_ns };

	/* New tables begin at zero. */
	if (after->moved < before->moved || after->adjusted < before->adjusted)
		return;
	change.count = after->moved - before->moved + after->adjusted - before->adjusted;
	if (change.count)
		report->handler(&change, report->argument);
}

void status_compare(const struct status *before, const struct status *after, uint64_t time_ns,
		    change_handler handler, void *argument)
{
	const struct report report = { time_ns, handler, argument };
	size_t i;

	for (i = 0; i < before->nr_groups; i++)
		if (!find_group(after, &before->groups[i]))
			report_group(&report, CHANGE_DETACHED, &before->groups[i]);
	for (i = 0; i < after->nr_groups; i++)
		compare_group(&report, find_group(before, &after->groups[i]), &after->groups[i]);
	compare_audits(&report, &before->audits, &after->audits);
	if (before->nr_groups && !after->nr_groups)
		handler(&(struct change){ .kind = CHANGE_IDLE, .time_ns = time_ns }, argument);
}

bool status_is_settling(const struct status *before, const struct status *after)
{
	size_t i;

	for (i = 0; i < after->nr_groups; i++) {
		const struct status_group *group = find_group(before, &after->groups[i]);

		if (group && group->steered && !after->groups[i].steered)
			return true;
	}
	return false;
}
