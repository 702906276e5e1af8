/* SPDX-License-Identifier: GPL-2.0-only */
#include "show/list.h"

#include "base/text.h"
#include "show/json.h"
#include "show/table.h"
#include "steering/names.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/stat.h>

/* As many processes as a row names; the others are only counted. Six fit beside the rest. */
#define MAX_NAMED 6

#define NAME_TEXT_SIZE (4 * COMM_SIZE + 1)
#define REASON_TEXT_SIZE 128
#define STEERED_TEXT_SIZE (NAME_TEXT_SIZE + 32)
#define DEVICE_TEXT_SIZE (4 * IF_NAMESIZE + 1)

enum {
	COLUMN_ADDRESS,
	COLUMN_NETNS,
	COLUMN_LISTENERS,
	COLUMN_WORKERS,
	COLUMN_STEERED,
	COLUMN_NOTE,
};

/* On a narrow terminal the long columns wrap: a pid or a reason that is cut is of no use. */
static const struct table_column columns[] = {
	[COLUMN_ADDRESS] = { "ADDRESS", 0, 0 },
	[COLUMN_NETNS] = { "NETNS", 0, SCOLS_FL_RIGHT },
	[COLUMN_LISTENERS] = { "LISTENERS", 0, SCOLS_FL_RIGHT },
	[COLUMN_WORKERS] = { "WORKERS", 0.2, SCOLS_FL_WRAP },
	[COLUMN_STEERED] = { "STEERED", 0, SCOLS_FL_TRUNC },
	[COLUMN_NOTE] = { "NOTE", 0.3, SCOLS_FL_WRAP },
};

/*
 * The device that the group is bound to, "" for any. An index means nothing outside of its network
 * namespace, so a group elsewhere keeps the number.
 */
static void device_text(const struct group *group, char ret_text[DEVICE_TEXT_SIZE])
{
	char name[IF_NAMESIZE];
	struct stat own;

	ret_text[0] = '\0';
	if (!group->ifindex)
		return;
	if (!stat("/proc/self/ns/net", &own) && own.st_ino == group->netns &&
	    if_indextoname(group->ifindex, name))
		text_escape(name, sizeof(name), ret_text, DEVICE_TEXT_SIZE);
	else
		snprintf(ret_text, DEVICE_TEXT_SIZE, "%u", group->ifindex);
}

/* Who steers the group: false, with "no", if nobody does. */
static bool steered_text(const struct group *group, char ret_text[STEERED_TEXT_SIZE])
{
	char name[NAME_TEXT_SIZE];

	text_escape(group->prog_name, sizeof(group->prog_name), name, sizeof(name));
	if (group->ours)
		snprintf(ret_text, STEERED_TEXT_SIZE, "socksteer");
	else if (group->prog_id && name[0])
		snprintf(ret_text, STEERED_TEXT_SIZE, "program \"%s\" id %u", name, group->prog_id);
	else if (group->prog_id)
		snprintf(ret_text, STEERED_TEXT_SIZE, "program id %u", group->prog_id);
	else if (group->prog_type)
		snprintf(ret_text, STEERED_TEXT_SIZE, "classic BPF");
	else
		snprintf(ret_text, STEERED_TEXT_SIZE, "no");
	return group->ours || group->prog_id || group->prog_type;
}

static bool is_same_worker(const struct listener *a, const struct listener *b)
{
	return a->pid == b->pid && a->event_loop == b->event_loop;
}

/* The first listener of the same process or, with_loop, of the same worker. */
static size_t find_first(const struct group *group, const struct listener *listener, bool with_loop)
{
	size_t i;

	for (i = 0; &group->listeners[i] < listener; i++) {
		const struct listener *other = &group->listeners[i];

		if (with_loop ? is_same_worker(other, listener) : other->pid == listener->pid)
			break;
	}
	return i;
}

/* A process may be several workers: one for each event loop. */
static size_t process_nr_workers(const struct group *group, uint32_t pid)
{
	size_t count = 0, i;

	for (i = 0; i < group->nr_listeners; i++)
		if (group->listeners[i].pid == pid)
			count += find_first(group, &group->listeners[i], true) == i;
	return count;
}

/*
 * "nginx:101", or ",102" behind another process of that name; "haproxy:7(2)" is two workers,
 * "?" is one that is not known.
 */
static void print_process(const struct listener *listener, const struct listener *previous,
			  size_t nr_workers, FILE *out)
{
	char name[NAME_TEXT_SIZE];

	text_escape(listener->comm, sizeof(listener->comm), name, sizeof(name));
	if (!listener->pid)
		fprintf(out, "%s?", previous ? " " : "");
	else if (previous && !strncmp(previous->comm, listener->comm, sizeof(listener->comm)))
		fprintf(out, ",%u", listener->pid);
	else
		fprintf(out, "%s%s:%u", previous ? " " : "", name, listener->pid);
	if (nr_workers > 1)
		fprintf(out, "(%zu)", nr_workers);
}

static int workers_text(const struct group *group, char **ret_text)
{
	const struct listener *previous = NULL;
	size_t nr_named = 0, left, size, i;
	FILE *out = open_memstream(ret_text, &size);

	if (!out)
		return -ENOMEM;
	left = group_nr_workers(group);
	for (i = 0; i < group->nr_listeners && nr_named < MAX_NAMED; i++) {
		const struct listener *listener = &group->listeners[i];
		size_t nr_workers;

		if (find_first(group, listener, false) != i)
			continue;
		nr_workers = process_nr_workers(group, listener->pid);
		print_process(listener, previous, nr_workers, out);
		previous = listener;
		left -= nr_workers;
		nr_named++;
	}
	if (left)
		fprintf(out, " +%zu", left);
	return fclose(out) ? -ENOMEM : 0;
}

static int list_add_group(const struct group *group, struct libscols_table *table)
{
	struct libscols_line *line = scols_table_new_line(table, NULL);
	char address[ADDRESS_TEXT_SIZE], device[DEVICE_TEXT_SIZE];
	char steered[STEERED_TEXT_SIZE], reason[REASON_TEXT_SIZE];
	CLEANUP(cleanup_free) char *workers = NULL;

	if (!line || workers_text(group, &workers))
		return -ENOMEM;
	text_of_address(group->family, group->address, group->port, address);
	device_text(group, device);
	steered_text(group, steered);
	group_reason_text(group, reason, sizeof(reason));
	if (table_set(line, COLUMN_ADDRESS, "%s%s%s", address, device[0] ? "%" : "", device) ||
	    table_set(line, COLUMN_NETNS, "%u", group->netns) ||
	    table_set(line, COLUMN_LISTENERS, "%zu", group->nr_listeners) ||
	    table_set(line, COLUMN_WORKERS, "%s", workers) ||
	    table_set(line, COLUMN_STEERED, "%s", steered) ||
	    table_set(line, COLUMN_NOTE, "%s", reason))
		return -ENOMEM;
	return 0;
}

int list_print_table(const struct inventory *inventory, FILE *out)
{
	CLEANUP(table_free) struct libscols_table *table = NULL;
	size_t i;
	int err;

	if (!inventory->nr_groups)
		return fputs("No process listens on TCP.\n", out) < 0 ? -EIO : 0;
	err = table_new(columns, sizeof(columns) / sizeof(columns[0]), &table);
	for (i = 0; !err && i < inventory->nr_groups; i++)
		err = list_add_group(&inventory->groups[i], table);
	return err ? err : table_print(table, out);
}

static json_t *json_of_listener(const struct listener *listener, size_t worker)
{
	json_t *object = json_object();

	object = json_with_number(object, "cookie", listener->cookie);
	object = json_with_number(object, "pid", listener->pid);
	object = json_with(object, "comm", json_of_name(listener->comm, sizeof(listener->comm)));
	object = json_with_number(object, "worker", worker);
	object = json_with_text(object, "state", worker_state_name(listener->state));
	object = json_with_number(object, "half_open", listener->half_open);
	object = json_with_number(object, "queued", listener->queued);
	return json_with_number(object, "backlog", listener->backlog);
}

/* The workers of the group are numbered, so that two event loops of one process differ. */
static json_t *json_of_listeners(const struct group *group)
{
	CLEANUP(cleanup_free) size_t *workers = calloc(group->nr_listeners + 1, sizeof(*workers));
	size_t nr_workers = 0, first, i;
	json_t *array;

	if (!workers)
		return NULL;
	array = json_array();
	for (i = 0; i < group->nr_listeners; i++) {
		first = find_first(group, &group->listeners[i], true);
		workers[i] = first == i ? nr_workers++ : workers[first];
		array = json_with_item(array, json_of_listener(&group->listeners[i], workers[i]));
	}
	return array;
}

static json_t *json_of_group(const struct group *group)
{
	char device[DEVICE_TEXT_SIZE], steered[STEERED_TEXT_SIZE], reason[REASON_TEXT_SIZE];
	json_t *object = json_object();

	device_text(group, device);
	if (!steered_text(group, steered))
		steered[0] = '\0';
	group_reason_text(group, reason, sizeof(reason));
	object = json_with(object, "address", json_of_address(group->family, group->address));
	object = json_with_number(object, "port", group->port);
	object = json_with_text(object, "interface", device);
	object = json_with(object, "family", json_of_family(group->family));
	object = json_with_number(object, "netns", group->netns);
	object = json_with(object, "listeners", json_of_listeners(group));
	object = json_with_number(object, "workers", group_nr_workers(group));
	object = json_with_text(object, "steered_by", steered);
	object = json_with(object, "steerable", json_boolean(group->reason == REASON_NONE));
	return json_with_text(object, "reason", reason);
}

int list_print_json(const struct inventory *inventory, FILE *out)
{
	json_t *groups = json_array();
	size_t i;

	for (i = 0; i < inventory->nr_groups; i++)
		groups = json_with_item(groups, json_of_group(&inventory->groups[i]));
	return json_print(json_with(json_object(), "groups", groups), out);
}
