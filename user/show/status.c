/* SPDX-License-Identifier: GPL-2.0-only */
#include "show/status.h"

#include "show/json.h"
#include "show/settings.h"
#include "show/table.h"
#include "steering/names.h"

#include <errno.h>
#include <inttypes.h>

#define NAME_TEXT_SIZE (4 * COMM_SIZE + 1)

enum {
	COLUMN_SLOT,
	COLUMN_PID,
	COLUMN_COMMAND,
	COLUMN_STATE,
	COLUMN_WEIGHT, /* only where a worker has another weight than 1 */
	COLUMN_HELD,
	COLUMN_WORKER,
	COLUMN_HALF_OPEN,
	COLUMN_QUEUED,
	COLUMN_STEERED,
	COLUMN_SHARE,
};

static const struct table_column columns[] = {
	[COLUMN_SLOT] = { "SLOT", 0, SCOLS_FL_RIGHT },
	[COLUMN_PID] = { "PID", 0, SCOLS_FL_RIGHT },
	[COLUMN_COMMAND] = { "COMMAND", 0, SCOLS_FL_TRUNC },
	[COLUMN_STATE] = { "STATE", 0, 0 },
	[COLUMN_WEIGHT] = { "WEIGHT", 0, SCOLS_FL_RIGHT },
	[COLUMN_HELD] = { "HELD", 0, SCOLS_FL_RIGHT },
	[COLUMN_WORKER] = { "WORKER", 0, SCOLS_FL_RIGHT },
	[COLUMN_HALF_OPEN] = { "HALF-OPEN", 0, SCOLS_FL_RIGHT },
	[COLUMN_QUEUED] = { "QUEUED", 0, SCOLS_FL_RIGHT },
	[COLUMN_STEERED] = { "STEERED", 0, SCOLS_FL_RIGHT },
	[COLUMN_SHARE] = { "SHARE", 0, SCOLS_FL_RIGHT },
};

static uint64_t group_nr_steered(const struct status_group *group)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < group->nr_listeners; i++)
		sum += group->listeners[i].load.steered;
	return sum;
}

static int set_share(struct libscols_line *line, uint64_t nr_steered, uint64_t nr_total)
{
	if (!nr_total)
		return table_set(line, COLUMN_SHARE, "-");
	return table_set(line, COLUMN_SHARE, "%.1f%%",
			 100.0 * (double)nr_steered / (double)nr_total);
}

static const char *state_name(const struct status_listener *listener)
{
	return listener->gone ? "gone" : worker_state_name(listener->state);
}

static bool has_weights(const struct status_group *group)
{
	size_t i;

	for (i = 0; i < group->nr_listeners; i++)
		if (group->listeners[i].weight != DEFAULT_WEIGHT)
			return true;
	return false;
}

#define STATE_TEXT_SIZE 48

/* With for how long, where that says something: an event loop is busy for milliseconds all the time. */
static void state_text(const struct status_listener *listener, char text[STATE_TEXT_SIZE])
{
	bool is_long = listener->state == STATE_STUCK || listener->state_ms >= 1000;

	if (listener->gone || !is_long || !listener->state_ms)
		snprintf(text, STATE_TEXT_SIZE, "%s", state_name(listener));
	else
		snprintf(text, STATE_TEXT_SIZE, "%s %.1fs", state_name(listener),
			 (double)listener->state_ms / 1000);
}

/* What the listener does, and what keeps it from its share. */
static int set_state(struct libscols_line *line, const struct status_listener *listener)
{
	char state[STATE_TEXT_SIZE];

	state_text(listener, state);
	if (listener->draining && !listener->gone)
		return table_set(line, COLUMN_STATE, "draining");
	if (listener->slow_start_percent < 100 && !listener->gone && listener->state != STATE_STUCK)
		return table_set(line, COLUMN_STATE, "%s, slow start %u%%", state,
				 listener->slow_start_percent);
	return table_set(line, COLUMN_STATE, "%s", state);
}

static int status_add_listener(const struct status_listener *listener, uint64_t nr_total,
			       struct libscols_table *table)
{
	struct libscols_line *line = scols_table_new_line(table, NULL);
	char comm[NAME_TEXT_SIZE];

	text_escape(listener->comm, sizeof(listener->comm), comm, sizeof(comm));
	if (!line || table_set(line, COLUMN_SLOT, "%u", listener->slot) ||
	    table_set(line, COLUMN_PID, "%u", listener->pid) ||
	    table_set(line, COLUMN_COMMAND, "%s", comm) || set_state(line, listener) ||
	    table_set(line, COLUMN_WEIGHT, "%u", listener->weight) ||
	    table_set(line, COLUMN_HELD, "%" PRIu64, listener->held) ||
	    table_set(line, COLUMN_WORKER, "%" PRIu64, listener->worker_held) ||
	    table_set(line, COLUMN_HALF_OPEN, "%u", listener->half_open) ||
	    table_set(line, COLUMN_QUEUED, "%u/%u", listener->queued, listener->backlog) ||
	    table_set(line, COLUMN_STEERED, "%" PRIu64, (uint64_t)listener->load.steered) ||
	    set_share(line, listener->load.steered, nr_total))
		return -ENOMEM;
	return 0;
}

static void print_heading(const struct status_group *group, FILE *out)
{
	fprintf(out, "%s (netns %u): policy %s, %zu listener%s, %s\n", group->name, group->netns,
		policy_name(group->policy), group->nr_listeners,
		group->nr_listeners == 1 ? "" : "s",
		group->steered ? "steered" : "not steered: our program is no longer attached");
	if (group->steered && group->nr_missing)
		fprintf(out,
			"%u listener%s joined since and ha%s no slot, so the kernel's hash serves "
			"the group: run \"socksteer attach %s\" again\n",
			group->nr_missing, group->nr_missing == 1 ? "" : "s",
			group->nr_missing == 1 ? "s" : "ve", group->name);
}

static void print_outcomes(const struct status_group *group, FILE *out)
{
	const char *separator = " ";
	size_t i;

	fputs("outcomes:", out);
	for (i = 0; i < NR_OUTCOMES; i++) {
		if (!group->outcomes[i])
			continue;
		fprintf(out, "%s%s %" PRIu64, separator, outcome_name((enum outcome)i),
			group->outcomes[i]);
		separator = ", ";
	}
	fputs(separator[0] == ',' ? "\n" : " none yet\n", out);
}

static int status_print_group(const struct status_group *group, FILE *out)
{
	CLEANUP(table_free) struct libscols_table *table = NULL;
	uint64_t nr_total = group_nr_steered(group);
	size_t i;
	int err;

	err = table_new(columns, sizeof(columns) / sizeof(columns[0]), &table);
	if (!err && !has_weights(group))
		scols_column_set_flags(scols_table_get_column(table, COLUMN_WEIGHT),
				       SCOLS_FL_RIGHT | SCOLS_FL_HIDDEN);
	for (i = 0; !err && i < group->nr_listeners; i++)
		err = status_add_listener(&group->listeners[i], nr_total, table);
	if (err)
		return err;
	print_heading(group, out);
	err = table_print(table, out);
	print_outcomes(group, out);
	return err;
}

int status_print_table(const struct status *status, FILE *out)
{
	size_t i;
	int err = 0;

	if (!status->nr_groups)
		fputs("No group is steered. \"socksteer list\" shows which could be.\n", out);
	for (i = 0; !err && i < status->nr_groups; i++) {
		if (i)
			fputc('\n', out);
		err = status_print_group(&status->groups[i], out);
	}
	if (!err && ferror(out))
		err = -EIO;
	return err;
}

static json_t *json_of_listener(const struct status_listener *listener)
{
	json_t *object = json_object();

	object = json_with_number(object, "slot", listener->slot);
	object = json_with_number(object, "cookie", listener->cookie);
	object = json_with_number(object, "pid", listener->pid);
	object = json_with(object, "comm", json_of_name(listener->comm, sizeof(listener->comm)));
	object = json_with_text(object, "state", state_name(listener));
	object = json_with_number(object, "state_ms", listener->state_ms);
	object = json_with_number(object, "head_ms", listener->head_ms);
	object = json_with_number(object, "nr_stuck", listener->nr_stuck);
	object = json_with_number(object, "nr_rescues", listener->nr_rescues);
	object = json_with(object, "draining", json_boolean(listener->draining));
	object = json_with_number(object, "weight", listener->weight);
	object = json_with_number(object, "slow_start_percent", listener->slow_start_percent);
	object = json_with_number(object, "held", listener->held);
	object = json_with_number(object, "worker_held", listener->worker_held);
	object = json_with_number(object, "half_open", listener->half_open);
	object = json_with_number(object, "queued", listener->queued);
	object = json_with_number(object, "backlog", listener->backlog);
#define LOAD_COUNTER(name, text) object = json_with_number(object, #name, listener->load.name);
#include "socksteer/counters.def"
	return object;
}

static json_t *json_of_listeners(const struct status_group *group)
{
	json_t *array = json_array();
	size_t i;

	for (i = 0; i < group->nr_listeners; i++)
		array = json_with_item(array, json_of_listener(&group->listeners[i]));
	return array;
}

static json_t *json_of_outcomes(const struct status_group *group)
{
	json_t *object = json_object();
	size_t i;

	for (i = 0; i < NR_OUTCOMES; i++)
		object =
			json_with_number(object, outcome_name((enum outcome)i), group->outcomes[i]);
	return object;
}

static json_t *json_of_group(const struct status_group *group)
{
	json_t *object = json_object();

	object = json_with_text(object, "name", group->name);
	object = json_with(object, "address", json_of_address(group->family, group->address));
	object = json_with_number(object, "port", group->port);
	object = json_with(object, "family", json_of_family(group->family));
	object = json_with_number(object, "netns", group->netns);
	object = json_with(object, "steered", json_boolean(group->steered));
	object = json_with_text(object, "policy", policy_name(group->policy));
	object = json_with(object, "settings", json_of_settings(&group->settings));
	object = json_with_number(object, "missing", group->nr_missing);
	object = json_with(object, "listeners", json_of_listeners(group));
	return json_with(object, "outcomes", json_of_outcomes(group));
}

static json_t *json_of_status(const struct status *status)
{
	json_t *groups = json_array();
	size_t i;

	for (i = 0; i < status->nr_groups; i++)
		groups = json_with_item(groups, json_of_group(&status->groups[i]));
	return json_with(json_object(), "groups", groups);
}

int status_print_json(const struct status *status, FILE *out)
{
	return json_print(json_of_status(status), out);
}

int status_print_json_line(const struct status *status, FILE *out)
{
	return json_print_line(json_of_status(status), out);
}
