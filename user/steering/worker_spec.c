/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/worker_spec.h"
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Slots that a message names one by one. */
#define MAX_SLOTS_NAMED 4

#define COMM_TEXT_SIZE (4 * COMM_SIZE + 1)
/* Enough of what the user wrote to know it again. */
#define QUOTE_SIZE 128

static int parse_number(const char *text, struct worker_spec *spec)
{
	uint64_t number;

	if (text_to_u64(text, 0, INT32_MAX, &number))
		return -EINVAL;
	spec->number = (uint32_t)number;
	return 0;
}

/* What stands before the last colon says what the number is; a command may have colons too. */
static int parse_kind(const char *text, const char *colon, struct worker_spec *spec)
{
	size_t length = (size_t)(colon - text);

	if (!length)
		return -EINVAL;
	spec->may_be_slot = length == 4 && !strncmp(text, "slot", length);
	spec->may_be_pid = !spec->may_be_slot;
	if (spec->may_be_slot || (length == 3 && !strncmp(text, "pid", length)))
		return 0;
	spec->command = text;
	spec->command_length = length;
	return 0;
}

int worker_spec_parse(const char *text, struct worker_spec *ret_spec)
{
	const char *colon = strrchr(text, ':');
	struct worker_spec spec = { .text = text };
	int err = parse_number(colon ? colon + 1 : text, &spec);

	if (!err && colon)
		err = parse_kind(text, colon, &spec);
	else
		spec.may_be_slot = spec.may_be_pid = true;
	if (!err)
		*ret_spec = spec;
	return err;
}

static bool is_command(const struct worker_spec *spec, const char *name, size_t length)
{
	return length == spec->command_length && !memcmp(name, spec->command, length);
}

/* The name as it is, or as the views show it. */
static bool command_matches(const struct worker_spec *spec, const struct status_listener *listener)
{
	char escaped[COMM_TEXT_SIZE];

	if (!spec->command)
		return true;
	text_escape(listener->comm, COMM_SIZE, escaped, sizeof(escaped));
	return is_command(spec, listener->comm, strnlen(listener->comm, COMM_SIZE)) ||
	       is_command(spec, escaped, strlen(escaped));
}

static bool slot_matches(const struct worker_spec *spec, const struct status_listener *listener)
{
	return spec->may_be_slot && !listener->gone && listener->slot == spec->number;
}

static bool pid_matches(const struct worker_spec *spec, const struct status_listener *listener)
{
	return spec->may_be_pid && !listener->gone && listener->pid == spec->number &&
	       listener->pid && command_matches(spec, listener);
}

/* The first listener that matches, and whether another worker does too. NULL without any. */
static const struct status_listener *
find_match(const struct worker_spec *spec, const struct status_group *group,
	   bool (*matches)(const struct worker_spec *, const struct status_listener *),
	   bool *ret_several)
{
	const struct status_listener *found = NULL;
	size_t i;

	*ret_several = false;
	for (i = 0; i < group->nr_listeners; i++) {
		const struct status_listener *listener = &group->listeners[i];

		if (!matches(spec, listener))
			continue;
		if (!found)
			found = listener;
		*ret_several |= listener->worker != found->worker;
	}
	return found;
}

static const char *quote(const struct worker_spec *spec, char ret_text[QUOTE_SIZE])
{
	text_escape(spec->text, strlen(spec->text), ret_text, QUOTE_SIZE);
	return ret_text;
}

/* One line for each worker that matches, or for all of them. */
static void list_workers(const struct worker_spec *spec, const struct status_group *group,
			 struct failure *failure)
{
	char comm[COMM_TEXT_SIZE];
	size_t i;

	for (i = 0; i < group->nr_listeners; i++) {
		const struct status_listener *listener = &group->listeners[i];

		if (listener->gone || (spec && !pid_matches(spec, listener)))
			continue;
		text_escape(listener->comm, COMM_SIZE, comm, sizeof(comm));
		failure_add(failure, "\n  slot:%u  %s:%u", listener->slot, comm, listener->pid);
	}
}

static int refuse_two_meanings(const struct worker_spec *spec, const struct status_group *group,
			       const struct status_listener *by_slot, struct failure *failure)
{
	char comm[COMM_TEXT_SIZE];

	text_escape(by_slot->comm, COMM_SIZE, comm, sizeof(comm));
	return failure_set(failure, EXIT_USAGE, EINVAL,
			   "%s: %u is the slot of %s:%u and the process of another worker; write "
			   "slot:%u or pid:%u",
			   group->name, spec->number, comm, by_slot->pid, spec->number,
			   spec->number);
}

static int refuse_several(const struct worker_spec *spec, const struct status_group *group,
			  struct failure *failure)
{
	failure_set(failure, EXIT_USAGE, EINVAL,
		    "%s: process %u is several workers; name one by its slot:", group->name,
		    spec->number);
	list_workers(spec, group, failure);
	return -EINVAL;
}

static int refuse_unknown(const struct worker_spec *spec, const struct status_group *group,
			  struct failure *failure)
{
	char quoted[QUOTE_SIZE];

	failure_set(failure, EXIT_NOTHING, ENOENT, "%s has no worker \"%s\"; it has:", group->name,
		    quote(spec, quoted));
	list_workers(NULL, group, failure);
	return -ENOENT;
}

int worker_spec_find(const struct worker_spec *spec, const struct status_group *group,
		     const struct status_listener **ret_listener, struct failure *failure)
{
	const struct status_listener *by_slot, *by_pid;
	bool ignored, several;

	by_slot = find_match(spec, group, slot_matches, &ignored);
	by_pid = find_match(spec, group, pid_matches, &several);
	if (by_slot && by_pid && (several || by_slot->worker != by_pid->worker))
		return refuse_two_meanings(spec, group, by_slot, failure);
	if (several)
		return refuse_several(spec, group, failure);
	if (!by_slot && !by_pid)
		return refuse_unknown(spec, group, failure);
	*ret_listener = by_slot ? by_slot : by_pid;
	return 0;
}

__attribute__((format(printf, 2, 3))) static void append(char text[WORKER_TEXT_SIZE],
							 const char *format, ...)
{
	size_t used = strlen(text);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text + used, WORKER_TEXT_SIZE - used, format, arguments);
	va_end(arguments);
}

static size_t count_slots(const struct status_group *group, uint32_t worker)
{
	size_t i, count = 0;

	for (i = 0; i < group->nr_listeners; i++)
		count += !group->listeners[i].gone && group->listeners[i].worker == worker;
	return count;
}

void worker_text(const struct status_group *group, const struct status_listener *listener,
		 char ret_text[WORKER_TEXT_SIZE])
{
	size_t nr_slots = count_slots(group, listener->worker), nr_named = 0, i;
	char comm[COMM_TEXT_SIZE];

	text_escape(listener->comm, COMM_SIZE, comm, sizeof(comm));
	ret_text[0] = '\0';
	append(ret_text, "%s:%u (slot%s", comm, listener->pid, nr_slots == 1 ? "" : "s");
	for (i = 0; i < group->nr_listeners && nr_named < MAX_SLOTS_NAMED; i++) {
		if (group->listeners[i].gone || group->listeners[i].worker != listener->worker)
			continue;
		append(ret_text, "%s %u", nr_named ? "," : "", group->listeners[i].slot);
		nr_named++;
	}
	if (nr_slots > nr_named)
		append(ret_text, " and %zu more", nr_slots - nr_named);
	append(ret_text, ")");
}
