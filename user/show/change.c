/* SPDX-License-Identifier: GPL-2.0-only */
#include "show/change.h"

#include "base/clock.h"
#include "base/text.h"
#include "show/json.h"

#include <errno.h>
#include <inttypes.h>
#include <time.h>

#define NAME_TEXT_SIZE (4 * COMM_SIZE + 1)
#define TIME_TEXT_SIZE 64

/* The name is what JSON calls it; the text is what a person reads. */
static const struct {
	const char *name;
	const char *text;
} kinds[NR_CHANGES] = {
	[CHANGE_WATCHING] = { "watching", "watching" },
	[CHANGE_LOST] = { "lost", "listeners came or went too fast to be told" },
	[CHANGE_REPAIRED] = { "repaired", "connections charged to their worker by an audit" },
	[CHANGE_JOINED] = { "joined", "listener joined" },
	[CHANGE_LEFT] = { "left", "listener left" },
	[CHANGE_PLACED] = { "placed", "listener placed" },
	[CHANGE_DRAINED] = { "drained", "drained" },
	[CHANGE_RESUMED] = { "resumed", "resumed" },
	[CHANGE_WEIGHT] = { "weight", "weight" },
	[CHANGE_STUCK] = { "stuck", "stuck" },
	[CHANGE_RECOVERED] = { "recovered", "takes connections again" },
	[CHANGE_RESCUED] = { "rescued", "its queue was moved to other workers" },
	[CHANGE_STEERED] = { "steered", "steered by" },
	[CHANGE_DETACHED] = { "detached", "no longer steered" },
	[CHANGE_REPLACED] = { "replaced", "our program is no longer attached" },
	[CHANGE_CLOSED] = { "closed", "the last listener has left" },
	[CHANGE_SETTING] = { "setting", "" },
	[CHANGE_IDLE] = { "idle", "no group is steered any more; still watching" },
};

/* The time of day at which the monotonic clock had this value. */
static struct timespec wall_time(uint64_t time_ns)
{
	struct timespec now;
	int64_t ns;

	clock_gettime(CLOCK_REALTIME, &now);
	ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - (int64_t)(clock_now_ns() - time_ns);
	return (struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
}

static void print_time(const struct change *change, FILE *out)
{
	struct timespec time = wall_time(change->time_ns);
	char text[TIME_TEXT_SIZE];
	struct tm parts;

	localtime_r(&time.tv_sec, &parts);
	strftime(text, sizeof(text), "%H:%M:%S", &parts);
	fprintf(out, "%s.%06ld ", text, time.tv_nsec / 1000);
}

static void print_listener(const struct change *change, FILE *out)
{
	char comm[NAME_TEXT_SIZE];

	if (!change->cookie)
		return;
	if (change->has_slot)
		fprintf(out, ", slot %u", change->slot);
	if (change->pid) {
		text_escape(change->comm, sizeof(change->comm), comm, sizeof(comm));
		fprintf(out, ", pid %u %s", change->pid, comm);
	}
	fprintf(out, ", cookie %" PRIu64, change->cookie);
}

static int finish_line(FILE *out)
{
	return fflush(out) || ferror(out) ? -EIO : 0;
}

int change_print_text(const struct change *change, FILE *out)
{
	print_time(change, out);
	if (change->group[0])
		fprintf(out, "%s (netns %u): ", change->group, change->netns);
	if (change->kind == CHANGE_LOST)
		fprintf(out, "%" PRIu64 " times ", change->count);
	if (change->kind == CHANGE_REPAIRED)
		fprintf(out, "%" PRIu64 " ", change->count);
	fputs(change->setting ? change->setting : kinds[change->kind].text, out);
	if (change->kind == CHANGE_WATCHING)
		fprintf(out, "; %" PRIu64 " group%s steered", change->count,
			change->count == 1 ? " is" : "s are");
	if (change->from[0])
		fprintf(out, " %s ->", change->from);
	if (change->to[0])
		fprintf(out, " %s", change->to);
	if (change->kind == CHANGE_STUCK)
		fprintf(out, ", %" PRIu64 " waiting", change->count);
	print_listener(change, out);
	fputc('\n', out);
	return finish_line(out);
}

/* ISO 8601 in UTC, to the microsecond. */
static json_t *json_of_time(uint64_t time_ns)
{
	struct timespec time = wall_time(time_ns);
	char date[TIME_TEXT_SIZE], text[2 * TIME_TEXT_SIZE];
	struct tm parts;

	gmtime_r(&time.tv_sec, &parts);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(text, sizeof(text), "%s.%06ldZ", date, time.tv_nsec / 1000);
	return json_string(text);
}

static json_t *json_with_listener(json_t *object, const struct change *change)
{
	if (!change->cookie)
		return object;
	object = json_with_number(object, "cookie", change->cookie);
	object = json_with(object, "slot",
			   change->has_slot ? json_integer(change->slot) : json_null());
	object = json_with(object, "pid", change->pid ? json_integer(change->pid) : json_null());
	return json_with(object, "comm", json_of_name(change->comm, sizeof(change->comm)));
}

int change_print_json(const struct change *change, FILE *out)
{
	json_t *object = json_object();
	int err;

	object = json_with(object, "time", json_of_time(change->time_ns));
	object = json_with_number(object, "monotonic_ns", change->time_ns);
	object = json_with_text(object, "event", kinds[change->kind].name);
	if (change->group[0]) {
		object = json_with_text(object, "group", change->group);
		object = json_with_number(object, "netns", change->netns);
	}
	object = json_with_listener(object, change);
	if (change->setting)
		object = json_with_text(object, "setting", change->setting);
	if (change->from[0])
		object = json_with_text(object, "from", change->from);
	if (change->to[0])
		object = json_with_text(object, "to", change->to);
	if (change->kind == CHANGE_WATCHING || change->kind == CHANGE_LOST ||
	    change->kind == CHANGE_REPAIRED || change->kind == CHANGE_STUCK ||
	    change->kind == CHANGE_RESCUED)
		object = json_with_number(object, "count", change->count);
	err = json_print_line(object, out);
	return err ? err : finish_line(out);
}
