/* SPDX-License-Identifier: GPL-2.0-only */
#include "show/metrics.h"

#include "base/text.h"
#include "base/version.h"
#include "socksteer/policy.h"
#include "steering/names.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Fits every name of a group or a process, each of its bytes written as \xNN. */
#define LABEL_TEXT_SIZE (4 * ADDRESS_TEXT_SIZE + 1)

/* All families are named so; HELP is a clause without a final point. */
#define PREFIX "socksteer_"

#define RESTARTS_WITH_LISTENER "; starts again at zero when the slot gets another listener"

struct group_family {
	const char *name;
	const char *help;
	uint64_t (*value)(const struct status_group *group);
	uint32_t per_unit; /* how many of the value make 1; 0 if each does */
};

struct listener_family {
	const char *name;
	const char *type;
	const char *help;
	uint64_t (*value)(const struct status_listener *listener);
	uint32_t per_unit; /* the same */
};

static uint64_t group_is_steered(const struct status_group *group)
{
	return group->steered;
}

static uint64_t group_nr_listeners(const struct status_group *group)
{
	return group->nr_listeners;
}

static uint64_t group_nr_missing(const struct status_group *group)
{
	return group->nr_missing;
}

static uint64_t group_slow_start(const struct status_group *group)
{
	return group->settings.slow_start_ns;
}

static uint64_t group_busy_penalty(const struct status_group *group)
{
	return group->settings.busy_penalty;
}

static uint64_t group_stuck_after(const struct status_group *group)
{
	return group->settings.stuck_after_ns;
}

static const struct group_family group_families[] = {
	{ "group_steered",
	  "1 if our program is attached to the group, 0 if the kernel's hash serves it",
	  group_is_steered, 0 },
	{ "group_listeners", "listeners that have a slot", group_nr_listeners, 0 },
	{ "group_listeners_missing",
	  "listeners that joined and have no slot yet; until they have, the kernel's hash serves the group",
	  group_nr_missing, 0 },
	{ "group_slow_start_seconds",
	  "the setting slow-start: a listener that joins reaches its full share after this",
	  group_slow_start, 1000000000 },
	{ "group_busy_penalty_connections",
	  "the setting busy-penalty: what a worker weighs more while its event loop runs a handler",
	  group_busy_penalty, LOAD_UNIT },
	{ "group_stuck_after_seconds",
	  "the setting stuck-after: a queue whose first connection is not accepted for this is stuck",
	  group_stuck_after, 1000000000 },
};

/* A family of its own for each figure of a listener, all read in the same way. */
#define LISTENER_VALUE(name, member)                                                               \
	static uint64_t listener_##name(const struct status_listener *listener)                    \
	{                                                                                          \
		return listener->member;                                                           \
	}

LISTENER_VALUE(held, held)
LISTENER_VALUE(worker_held, worker_held)
LISTENER_VALUE(half_open, half_open)
LISTENER_VALUE(queued, queued)
LISTENER_VALUE(backlog, backlog)
LISTENER_VALUE(head_ms, head_ms)
LISTENER_VALUE(nr_stuck, nr_stuck)
LISTENER_VALUE(nr_rescues, nr_rescues)
LISTENER_VALUE(weight, weight)
LISTENER_VALUE(draining, draining)
LISTENER_VALUE(slow_start, slow_start_percent)
#define LOAD_COUNTER(name, text) LISTENER_VALUE(name, load.name)
#include "socksteer/counters.def"

static const struct listener_family listener_families[] = {
	{ "listener_held", "gauge", "connections of this listener that are not closed yet",
	  listener_held, 0 },
	{ "listener_worker_held", "gauge",
	  "the same over all listeners of its worker, which is what is compared; not for sums",
	  listener_worker_held, 0 },
	{ "listener_half_open", "gauge", "handshakes begun and not finished", listener_half_open,
	  0 },
	{ "listener_queued", "gauge", "connections that wait to be accepted", listener_queued, 0 },
	{ "listener_backlog", "gauge", "connections that may wait to be accepted", listener_backlog,
	  0 },
	{ "listener_head_seconds", "gauge",
	  "how long the first of them has been seen waiting, as of the last look", listener_head_ms,
	  1000 },
	{ "listener_stuck_total", "counter",
	  "how often the listener was found stuck" RESTARTS_WITH_LISTENER, listener_nr_stuck, 0 },
	{ "listener_rescues_total", "counter",
	  "how often its queue was moved to other workers" RESTARTS_WITH_LISTENER,
	  listener_nr_rescues, 0 },
	{ "listener_weight", "gauge", "share of load relative to the other workers",
	  listener_weight, 0 },
	{ "listener_draining", "gauge", "1 if the worker gets no new connections",
	  listener_draining, 0 },
	{ "listener_slow_start_ratio", "gauge",
	  "how much of its share the listener has reached since it joined", listener_slow_start,
	  100 },
#define LOAD_COUNTER(name, text)                                                                   \
	{ "listener_" #name "_total", "counter", text RESTARTS_WITH_LISTENER, listener_##name, 0 },
#include "socksteer/counters.def"
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void print_heading(const char *name, const char *type, const char *help, FILE *out)
{
	fprintf(out, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n", name, help, name, type);
}

/* One more label of a series, with what comes before it: "{" or ",". */
static void print_label(const char *before, const char *name, const char *value, size_t size,
			FILE *out)
{
	char text[LABEL_TEXT_SIZE];
	const char *byte;

	text_escape(value, size, text, sizeof(text));
	fprintf(out, "%s%s=\"", before, name);
	/* A new line would be escaped as well; text_escape() has left none. */
	for (byte = text; *byte; byte++)
		fprintf(out, "%s%c", *byte == '"' || *byte == '\\' ? "\\" : "", *byte);
	fputc('"', out);
}

/* What ends a series. Whole numbers stay exact beyond what a double holds. */
static void print_value(uint64_t value, uint32_t per_unit, FILE *out)
{
	if (per_unit)
		fprintf(out, "} %.10g\n", (double)value / per_unit);
	else
		fprintf(out, "} %" PRIu64 "\n", value);
}

static void print_group_labels(const struct status_group *group, FILE *out)
{
	print_label("{", "group", group->name, sizeof(group->name), out);
	fprintf(out, ",netns=\"%u\"", group->netns);
}

static void print_listener_labels(const struct status_group *group,
				  const struct status_listener *listener, FILE *out)
{
	print_group_labels(group, out);
	fprintf(out, ",slot=\"%u\"", listener->slot);
}

/*
 * A [::] group that ended and came back with another IPV6_V6ONLY leaves pins of the same name and
 * network. Two series with the same labels make Prometheus refuse all of them, so the one that is
 * steered is shown, or else the first.
 */
static bool is_hidden(const struct status *status, const struct status_group *group)
{
	size_t i;

	for (i = 0; i < status->nr_groups; i++) {
		const struct status_group *other = &status->groups[i];

		if (other == group || other->netns != group->netns ||
		    strcmp(other->name, group->name) != 0)
			continue;
		if (other->steered > group->steered ||
		    (other->steered == group->steered && other < group))
			return true;
	}
	return false;
}

/* The first group that is shown, or the next one after another; NULL when there is none. */
static const struct status_group *next_group(const struct status *status,
					     const struct status_group *group)
{
	const struct status_group *end = status->groups + status->nr_groups;

	for (group = group ? group + 1 : status->groups; group < end; group++)
		if (!is_hidden(status, group))
			return group;
	return NULL;
}

#define FOR_EACH_GROUP(group, status)                                                              \
	for ((group) = next_group(status, NULL); (group); (group) = next_group(status, group))

static void print_build(FILE *out)
{
	print_heading("build_info", "gauge", "the program, and the layout of the maps it reads",
		      out);
	fputs(PREFIX "build_info", out);
	print_label("{", "version", SOCKSTEER_VERSION, sizeof(SOCKSTEER_VERSION), out);
	fprintf(out, ",layout=\"%d\"} 1\n", LAYOUT_VERSION);
}

static void print_group_info(const struct status *status, FILE *out)
{
	const struct status_group *group;

	print_heading("group_info", "gauge", "the policy by which the group is steered", out);
	FOR_EACH_GROUP(group, status)
	{
		fputs(PREFIX "group_info", out);
		print_group_labels(group, out);
		fprintf(out, ",policy=\"%s\"} 1\n", policy_name(group->policy));
	}
}

static void print_group_family(const struct group_family *family, const struct status *status,
			       FILE *out)
{
	const struct status_group *group;

	print_heading(family->name, "gauge", family->help, out);
	FOR_EACH_GROUP(group, status)
	{
		fprintf(out, PREFIX "%s", family->name);
		print_group_labels(group, out);
		print_value(family->value(group), family->per_unit, out);
	}
}

static void print_runs(const struct status *status, FILE *out)
{
	const struct status_group *group;
	size_t i;

	print_heading(
		"runs_total", "counter",
		"runs of the steering program by how the choice ended, which is not the number "
		"of connections; starts again at zero when the group is attached anew",
		out);
	FOR_EACH_GROUP(group, status)
	{
		for (i = 0; i < NR_OUTCOMES; i++) {
			fputs(PREFIX "runs_total", out);
			print_group_labels(group, out);
			fprintf(out, ",outcome=\"%s\"} %" PRIu64 "\n",
				outcome_name((enum outcome)i), group->outcomes[i]);
		}
	}
}

static void print_listener_info(const struct status *status, FILE *out)
{
	const struct status_group *group;
	size_t i;

	print_heading("listener_info", "gauge", "the process that serves the listener", out);
	FOR_EACH_GROUP(group, status)
	{
		for (i = 0; i < group->nr_listeners; i++) {
			const struct status_listener *listener = &group->listeners[i];

			fputs(PREFIX "listener_info", out);
			print_listener_labels(group, listener, out);
			fprintf(out, ",pid=\"%u\"", listener->pid);
			print_label(",", "comm", listener->comm, sizeof(listener->comm), out);
			fputs("} 1\n", out);
		}
	}
}

/* One series for each state, of which one is 1. */
static void print_states(const struct status_group *group, const struct status_listener *listener,
			 FILE *out)
{
	uint32_t state;

	for (state = 0; state <= NR_STATES; state++) {
		bool is_gone = state == NR_STATES;
		bool is_so = is_gone ? listener->gone : !listener->gone && listener->state == state;

		fputs(PREFIX "listener_state", out);
		print_listener_labels(group, listener, out);
		fprintf(out, ",state=\"%s\"} %d\n", is_gone ? "gone" : worker_state_name(state),
			is_so);
	}
}

static void print_listener_states(const struct status *status, FILE *out)
{
	const struct status_group *group;
	size_t i;

	print_heading(
		"listener_state", "gauge",
		"1 for the state that the worker is in: idle (waits for events), busy, "
		"unattended (nobody waits for the listener), stuck (it does not accept what is "
		"queued), gone (it closed), or unknown",
		out);
	FOR_EACH_GROUP(group, status)
	{
		for (i = 0; i < group->nr_listeners; i++)
			print_states(group, &group->listeners[i], out);
	}
}

static void print_listener_family(const struct listener_family *family, const struct status *status,
				  FILE *out)
{
	const struct status_group *group;
	size_t i;

	print_heading(family->name, family->type, family->help, out);
	FOR_EACH_GROUP(group, status)
	{
		for (i = 0; i < group->nr_listeners; i++) {
			fprintf(out, PREFIX "%s", family->name);
			print_listener_labels(group, &group->listeners[i], out);
			print_value(family->value(&group->listeners[i]), family->per_unit, out);
		}
	}
}

static void print_audits(const struct audits *audits, FILE *out)
{
#define AUDIT_COUNTER(name, text)                                                                  \
	print_heading("audit_" #name "_total", "counter", text, out);                              \
	fprintf(out, PREFIX "audit_" #name "_total %" PRIu64 "\n", (uint64_t)audits->name);
#include "socksteer/counters.def"
}

int metrics_print(const struct status *status, FILE *out)
{
	size_t i;

	print_build(out);
	print_audits(&status->audits, out);
	print_group_info(status, out);
	for (i = 0; i < COUNT(group_families); i++)
		print_group_family(&group_families[i], status, out);
	print_runs(status, out);
	print_listener_info(status, out);
	print_listener_states(status, out);
	for (i = 0; i < COUNT(listener_families); i++)
		print_listener_family(&listener_families[i], status, out);
	return ferror(out) ? -EIO : 0;
}
