/* SPDX-License-Identifier: GPL-2.0-only */
#include "show/audit.h"

#include "base/text.h"
#include "show/json.h"
#include "show/table.h"

#include <errno.h>
#include <inttypes.h>

#define NAME_TEXT_SIZE (4 * COMM_SIZE + 1)

enum {
	COLUMN_SLOT,
	COLUMN_PID,
	COLUMN_COMMAND,
	COLUMN_HELD,
	COLUMN_SOCKETS,
	COLUMN_DIFFERENCE,
	COLUMN_WORKER,
};

static const struct table_column columns[] = {
	[COLUMN_SLOT] = { "SLOT", 0, SCOLS_FL_RIGHT },
	[COLUMN_PID] = { "PID", 0, SCOLS_FL_RIGHT },
	[COLUMN_COMMAND] = { "COMMAND", 0, SCOLS_FL_TRUNC },
	[COLUMN_HELD] = { "HELD", 0, SCOLS_FL_RIGHT },
	[COLUMN_SOCKETS] = { "SOCKETS", 0, SCOLS_FL_RIGHT },
	[COLUMN_DIFFERENCE] = { "DIFFERENCE", 0, SCOLS_FL_RIGHT },
	[COLUMN_WORKER] = { "WORKER'S", 0, SCOLS_FL_RIGHT },
};

/* "+3" for certain, "+3..+5" where the bounds did not meet, "0" where they allow for none. */
static int set_difference(struct libscols_line *line, size_t column,
			  const struct audit_difference *difference)
{
	if (difference->low == difference->high)
		return table_set(line, column, difference->low ? "%+" PRId64 : "%" PRId64,
				 difference->low);
	if (!audit_certain(difference))
		return table_set(line, column, "0");
	return table_set(line, column, "%+" PRId64 "..%+" PRId64, difference->low,
			 difference->high);
}

static int add_row(const struct audit_row *row, struct libscols_table *table)
{
	struct libscols_line *line = scols_table_new_line(table, NULL);
	char comm[NAME_TEXT_SIZE];

	text_escape(row->comm, sizeof(row->comm), comm, sizeof(comm));
	if (!line || table_set(line, COLUMN_SLOT, "%u", row->slot) ||
	    table_set(line, COLUMN_PID, "%u", row->pid) ||
	    table_set(line, COLUMN_COMMAND, "%s", comm) ||
	    table_set(line, COLUMN_HELD, "%" PRIu64, row->held) ||
	    table_set(line, COLUMN_SOCKETS, "%" PRIu64, row->counted) ||
	    set_difference(line, COLUMN_DIFFERENCE, &row->listener) ||
	    set_difference(line, COLUMN_WORKER, &row->worker))
		return -ENOMEM;
	return 0;
}

static int print_group(const struct audit_group *group, FILE *out)
{
	CLEANUP(table_free) struct libscols_table *table = NULL;
	size_t i;
	int err;

	err = table_new(columns, sizeof(columns) / sizeof(columns[0]), &table);
	for (i = 0; !err && i < group->nr_rows; i++)
		err = add_row(&group->rows[i], table);
	if (err)
		return err;
	fprintf(out, "%s (netns %u)\n", group->name, group->netns);
	return table_print(table, out);
}

static void print_totals(const struct audit_report *report, FILE *out)
{
	const char *done = report->repaired ? ", mended" : "";

	fprintf(out, "%" PRIu64 " connections counted in %u pass%s and %.1f ms\n",
		report->nr_connections, report->nr_passes, report->nr_passes == 1 ? "" : "es",
		(double)report->duration_ns / 1e6);
	if (report->nr_misplaced)
		fprintf(out, "%" PRIu64 " charged to another worker than holds them%s\n",
			report->nr_misplaced, done);
	if (report->nr_unrecorded)
		fprintf(out, "%" PRIu64 " charged to nobody%s\n", report->nr_unrecorded, done);
	if (report->nr_adjusted)
		fprintf(out, "counters changed by %" PRIu64 " connections\n", report->nr_adjusted);
}

int audit_print_table(const struct audit_report *report, FILE *out)
{
	size_t i;
	int err = 0;

	if (!report->nr_groups)
		fputs("No group is steered. \"socksteer list\" shows which could be.\n", out);
	for (i = 0; !err && i < report->nr_groups; i++) {
		err = print_group(&report->groups[i], out);
		fputc('\n', out);
	}
	if (!err && report->nr_groups)
		print_totals(report, out);
	return !err && ferror(out) ? -EIO : err;
}

static json_t *json_of_difference(const struct audit_difference *difference)
{
	json_t *object = json_object();

	object = json_with(object, "certain", json_integer(audit_certain(difference)));
	object = json_with(object, "low", json_integer(difference->low));
	return json_with(object, "high", json_integer(difference->high));
}

static json_t *json_of_row(const struct audit_row *row)
{
	json_t *object = json_object();

	object = json_with_number(object, "slot", row->slot);
	object = json_with_number(object, "pid", row->pid);
	object = json_with(object, "comm", json_of_name(row->comm, sizeof(row->comm)));
	object = json_with_number(object, "held", row->held);
	object = json_with_number(object, "sockets", row->counted);
	object = json_with(object, "difference", json_of_difference(&row->listener));
	return json_with(object, "worker_difference", json_of_difference(&row->worker));
}

static json_t *json_of_group(const struct audit_group *group)
{
	json_t *object = json_object(), *rows = json_array();
	size_t i;

	for (i = 0; i < group->nr_rows; i++)
		rows = json_with_item(rows, json_of_row(&group->rows[i]));
	object = json_with_text(object, "name", group->name);
	object = json_with_number(object, "netns", group->netns);
	return json_with(object, "listeners", rows);
}

int audit_print_json(const struct audit_report *report, FILE *out)
{
	json_t *object = json_object(), *groups = json_array();
	size_t i;

	for (i = 0; i < report->nr_groups; i++)
		groups = json_with_item(groups, json_of_group(&report->groups[i]));
	object = json_with(object, "groups", groups);
	object = json_with_number(object, "connections", report->nr_connections);
	object = json_with_number(object, "misplaced", report->nr_misplaced);
	object = json_with_number(object, "unrecorded", report->nr_unrecorded);
	object = json_with_number(object, "adjusted", report->nr_adjusted);
	object = json_with_number(object, "passes", report->nr_passes);
	object = json_with_number(object, "duration_us", report->duration_ns / 1000);
	object = json_with(object, "repaired", json_boolean(report->repaired));
	object = json_with(object, "clean", json_boolean(audit_is_clean(report)));
	return json_print(object, out);
}
