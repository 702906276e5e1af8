/* SPDX-License-Identifier: GPL-2.0-only */
#include "show/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The group at the earlier look; one that was attached anew meanwhile has counters of its own. */
static const struct status_group *find_before(const struct status *before,
					      const struct status_group *group)
{
	size_t i;

	for (i = 0; i < before->nr_groups; i++)
		if (before->groups[i].netns == group->netns &&
		    before->groups[i].attached_ns == group->attached_ns &&
		    !strcmp(before->groups[i].name, group->name))
			return &before->groups[i];
	return NULL;
}

/* Both are in the order of slots, so the search goes on where the last one ended. */
static double listener_rate(const struct status_group *before, size_t *cursor,
			    const struct status_listener *listener, double seconds)
{
	const struct status_listener *found;

	while (before && *cursor < before->nr_listeners &&
	       before->listeners[*cursor].slot < listener->slot)
		(*cursor)++;
	if (!before || *cursor >= before->nr_listeners)
		return -1;
	found = &before->listeners[*cursor];
	if (found->cookie != listener->cookie || found->load.steered > listener->load.steered)
		return -1;
	return (double)(listener->load.steered - found->load.steered) / seconds;
}

static int compare_numbers(double left, double right)
{
	return left < right ? -1 : left > right;
}

/* Loads are sorted from the heaviest down, and what is equal by slot. */
static int compare_rows(const void *left, const void *right, void *argument)
{
	const struct frame_row *a = left, *b = right;
	const struct view *view = argument;
	int order = 0;

	if (view->sort == SORT_PID)
		order = compare_numbers(a->listener->pid, b->listener->pid);
	else if (view->sort == SORT_HELD)
		order = compare_numbers((double)b->listener->held, (double)a->listener->held);
	else if (view->sort == SORT_QUEUED)
		order = compare_numbers(b->listener->queued, a->listener->queued);
	else if (view->sort == SORT_RATE)
		order = compare_numbers(b->rate, a->rate);
	if (!order)
		order = compare_numbers(a->listener->slot, b->listener->slot);
	return view->reverse ? -order : order;
}

static uint64_t group_most_held(const struct status_group *group)
{
	uint64_t most = 0;
	size_t i;

	for (i = 0; i < group->nr_listeners; i++)
		if (group->listeners[i].held > most)
			most = group->listeners[i].held;
	return most;
}

static void push(struct frame *frame, struct frame_row row, enum frame_kind kind)
{
	row.kind = kind;
	frame->rows[frame->nr_rows++] = row;
}

static void push_group(struct frame *frame, const struct status *before,
		       const struct status_group *group, const struct view *view)
{
	struct frame_row row = {
		.group = group,
		.before = frame->seconds > 0 ? find_before(before, group) : NULL,
		.rate = -1,
		.most_held = group_most_held(group),
	};
	size_t cursor = 0, i;

	if (frame->nr_rows)
		push(frame, (struct frame_row){}, FRAME_BLANK);
	push(frame, row, FRAME_GROUP);
	push(frame, row, FRAME_RATES);
	for (i = 0; i < group->nr_listeners; i++) {
		row.listener = &group->listeners[i];
		row.rate = listener_rate(row.before, &cursor, row.listener, frame->seconds);
		push(frame, row, FRAME_LISTENER);
	}
	qsort_r(&frame->rows[frame->nr_rows - i], i, sizeof(row), compare_rows,
		(void *)(uintptr_t)view);
	frame->nr_listeners += group->nr_listeners;
}

/* A group has three rows more than listeners; a note is one. */
static size_t count_rows(const struct status *now)
{
	size_t count = 1, i;

	for (i = 0; i < now->nr_groups; i++)
		count += now->groups[i].nr_listeners + 3;
	return count;
}

int frame_build(const struct status *before, const struct status *now, uint64_t elapsed_ns,
		const struct view *view, struct frame *ret_frame)
{
	struct frame frame = {
		.rows = calloc(count_rows(now), sizeof(*frame.rows)),
		.seconds = (double)elapsed_ns / 1e9,
		.nr_groups = now->nr_groups,
	};
	size_t i;

	if (!frame.rows)
		return -ENOMEM;
	for (i = 0; i < now->nr_groups; i++)
		push_group(&frame, before, &now->groups[i], view);
	if (!now->nr_groups)
		push(&frame, (struct frame_row){}, FRAME_NOTE);
	*ret_frame = frame;
	return 0;
}

void frame_done(struct frame *frame)
{
	free(frame->rows);
	*frame = (struct frame){};
}
