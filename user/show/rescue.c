/* SPDX-License-Identifier: GPL-2.0-only */
#include "show/rescue.h"

#include "show/json.h"

#include <errno.h>
#include <inttypes.h>

uint64_t rescue_nr_moved(const struct worker_rescue *rescue)
{
	uint64_t moved = 0;
	size_t i;

	for (i = 0; i < rescue->nr_listeners; i++)
		moved += rescue->listeners[i].queued_before;
	return moved;
}

static uint64_t total_duration_ns(const struct worker_rescue *rescue)
{
	uint64_t total_ns = 0;
	size_t i;

	for (i = 0; i < rescue->nr_listeners; i++)
		total_ns += rescue->listeners[i].duration_ns;
	return total_ns;
}

static bool was_stuck(const struct worker_rescue *rescue)
{
	size_t i;

	for (i = 0; i < rescue->nr_listeners; i++)
		if (rescue->listeners[i].was_stuck)
			return true;
	return false;
}

static void print_notes(const struct worker_rescue *rescue, FILE *notes)
{
	size_t i;

	if (rescue_nr_moved(rescue) && !was_stuck(rescue))
		fprintf(notes,
			"socksteer: %s was not stuck: it gets new connections as before, and "
			"EINVAL if it called accept() just then\n",
			rescue->worker);
	for (i = 0; i < rescue->nr_listeners; i++) {
		const struct rescue_report *listener = &rescue->listeners[i];

		if (listener->backlog_after < listener->backlog_before)
			fprintf(notes,
				"socksteer: slot %u had room for %u connections in its queue and "
				"has room for %u, as net.core.somaxconn says by now\n",
				listener->slot, listener->backlog_before, listener->backlog_after);
	}
}

int rescue_print_text(const struct worker_rescue *rescue, FILE *out, FILE *notes)
{
	uint64_t moved = rescue_nr_moved(rescue);

	if (moved)
		fprintf(out,
			"%s: moved %" PRIu64 " connection%s of %s to other workers in %.1f ms\n",
			rescue->group, moved, moved == 1 ? "" : "s", rescue->worker,
			(double)total_duration_ns(rescue) / 1e6);
	else
		fprintf(out, "%s: nothing waits for %s, and nothing was done\n", rescue->group,
			rescue->worker);
	/* In this order also for those who read both in one file. */
	if (fflush(out) || ferror(out))
		return -EIO;
	print_notes(rescue, notes);
	return 0;
}

static json_t *json_of_listener(const struct rescue_report *listener)
{
	json_t *object = json_object();

	object = json_with_number(object, "slot", listener->slot);
	object = json_with_number(object, "cookie", listener->cookie);
	object = json_with(object, "stuck", json_boolean(listener->was_stuck));
	object = json_with_number(object, "moved", listener->queued_before);
	object = json_with_number(object, "queued", listener->queued_after);
	object = json_with_number(object, "backlog", listener->backlog_after);
	return json_with_number(object, "duration_ns", listener->duration_ns);
}

int rescue_print_json(const struct worker_rescue *rescue, FILE *out)
{
	json_t *object = json_object(), *listeners = json_array();
	size_t i;

	for (i = 0; i < rescue->nr_listeners; i++)
		listeners = json_with_item(listeners, json_of_listener(&rescue->listeners[i]));
	object = json_with_text(object, "group", rescue->group);
	object = json_with_text(object, "worker", rescue->worker);
	object = json_with_number(object, "moved", rescue_nr_moved(rescue));
	object = json_with_number(object, "duration_ns", total_duration_ns(rescue));
	return json_print(json_with(object, "listeners", listeners), out);
}
