/* SPDX-License-Identifier: GPL-2.0-only */
/* What two looks at the steered groups have to say to each other, and how it is printed. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "show/change.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define HOSTILE_COMM "\x1b[31m\n\"\\\xff"

/* A group with two listeners, for a test to change. */
struct world {
	struct status_listener listeners[3];
	struct status_group group;
	struct status status;
};

static void world_init(struct world *world)
{
	*world = (struct world){
		.listeners = {
			{ .slot = 0, .cookie = 11, .pid = 101, .comm = "nginx", .weight = 1 },
			{ .slot = 1, .cookie = 12, .pid = 102, .comm = "nginx", .weight = 1 },
			{ .slot = 2, .cookie = 13, .pid = 103, .comm = HOSTILE_COMM, .weight = 1 },
		},
		.group = {
			.name = "127.0.0.1:80",
			.netns = 5,
			.steered = true,
			.attached_ns = 1,
			.policy = POLICY_LEAST_LOADED,
			.settings = { .policy = POLICY_LEAST_LOADED },
			.listeners = world->listeners,
			.nr_listeners = 2,
		},
		.status = { .groups = &world->group, .nr_groups = 1 },
	};
}

/* The first changes of a comparison, and how many there were. */
struct seen {
	struct change changes[8];
	size_t nr;
};

static void remember(const struct change *change, void *argument)
{
	struct seen *seen = argument;

	if (seen->nr < COUNT(seen->changes))
		seen->changes[seen->nr] = *change;
	seen->nr++;
}

static void expect_kinds(const char *what, const struct status *before, const struct status *after,
			 const enum change_kind *kinds, size_t nr_kinds, struct seen *ret_seen)
{
	*ret_seen = (struct seen){};
	status_compare(before, after, 77, remember, ret_seen);
	cr_assert_eq(ret_seen->nr, nr_kinds, "%s: %zu changes", what, ret_seen->nr);
	for (size_t i = 0; i < nr_kinds; i++) {
		cr_expect_eq(ret_seen->changes[i].kind, kinds[i], "%s: change %zu is %d", what, i,
			     ret_seen->changes[i].kind);
		cr_expect_eq(ret_seen->changes[i].time_ns, 77, "%s", what);
	}
}

#define EXPECT_KINDS(what, before, after, ret_seen, ...)                                           \
	expect_kinds(what, before, after, (const enum change_kind[]){ __VA_ARGS__ },               \
		     COUNT(((const enum change_kind[]){ __VA_ARGS__ })), ret_seen)

static const struct status nothing = {};

Test(changes, nothing_that_changes_is_nothing_to_say)
{
	struct world before, after;
	struct seen seen = {};

	world_init(&before);
	world_init(&after);
	after.listeners[0].held = 7;
	after.listeners[1].state = STATE_BUSY;
	after.group.outcomes[OUTCOME_SELECTED] = 100;
	status_compare(&before.status, &after.status, 77, remember, &seen);
	status_compare(&nothing, &nothing, 77, remember, &seen);
	cr_expect_eq(seen.nr, 0);
}

Test(changes, a_group_is_steered_and_later_is_not)
{
	struct world world;
	struct seen seen;

	world_init(&world);
	EXPECT_KINDS("attach", &nothing, &world.status, &seen, CHANGE_STEERED, CHANGE_PLACED,
		     CHANGE_PLACED);
	cr_expect_str_eq(seen.changes[0].group, "127.0.0.1:80");
	cr_expect_str_eq(seen.changes[0].to, "least-loaded");
	cr_expect_eq(seen.changes[0].netns, 5);
	cr_expect_eq(seen.changes[2].cookie, 12);
	cr_expect(seen.changes[2].has_slot && seen.changes[2].slot == 1);
	cr_expect_eq(seen.changes[2].pid, 102);
	EXPECT_KINDS("detach", &world.status, &nothing, &seen, CHANGE_DETACHED, CHANGE_IDLE);
}

Test(changes, a_group_that_is_attached_anew_was_detached_before)
{
	struct world before, after;
	struct seen seen;

	world_init(&before);
	world_init(&after);
	after.group.attached_ns = 2;
	EXPECT_KINDS("anew", &before.status, &after.status, &seen, CHANGE_DETACHED, CHANGE_STEERED,
		     CHANGE_PLACED, CHANGE_PLACED);
}

Test(changes, a_group_without_our_program_is_replaced_or_closed)
{
	struct world before, after;
	struct seen seen;

	world_init(&before);
	world_init(&after);
	after.group.steered = false;
	cr_expect(status_is_settling(&before.status, &after.status));
	EXPECT_KINDS("replaced", &before.status, &after.status, &seen, CHANGE_REPLACED);
	cr_expect_not(status_is_settling(&after.status, &before.status));
	EXPECT_KINDS("taken back", &after.status, &before.status, &seen, CHANGE_STEERED);
	after.listeners[0].gone = after.listeners[1].gone = true;
	EXPECT_KINDS("closed", &before.status, &after.status, &seen, CHANGE_CLOSED);
}

Test(changes, groups_of_one_name_in_two_networks_are_told_apart)
{
	struct world world;
	struct status_group two[2];
	const struct status status = { .groups = two, .nr_groups = 2 };
	struct seen seen;

	world_init(&world);
	two[0] = two[1] = world.group;
	two[1].netns = 6;
	EXPECT_KINDS("one of two", &status, &world.status, &seen, CHANGE_DETACHED);
	cr_expect_eq(seen.changes[0].netns, 6);
}

Test(changes, listeners_are_placed_drained_resumed_and_weighed)
{
	struct world before, after;
	struct seen seen;

	world_init(&before);
	world_init(&after);
	after.group.nr_listeners = 3;
	EXPECT_KINDS("placed", &before.status, &after.status, &seen, CHANGE_PLACED);
	cr_expect_eq(seen.changes[0].cookie, 13);
	EXPECT_KINDS("gone from its slot", &after.status, &before.status, &seen);
	world_init(&after);
	after.listeners[1].draining = true;
	EXPECT_KINDS("drained", &before.status, &after.status, &seen, CHANGE_DRAINED);
	EXPECT_KINDS("resumed", &after.status, &before.status, &seen, CHANGE_RESUMED);
	cr_expect_eq(seen.changes[0].slot, 1);
	world_init(&after);
	after.listeners[0].weight = 1000;
	EXPECT_KINDS("weight", &before.status, &after.status, &seen, CHANGE_WEIGHT);
	cr_expect_str_eq(seen.changes[0].from, "1");
	cr_expect_str_eq(seen.changes[0].to, "1000");
}

Test(changes, listeners_are_stuck_rescued_and_recovered)
{
	struct world before, after;
	struct seen seen;

	world_init(&before);
	world_init(&after);
	after.listeners[1].state = STATE_STUCK;
	after.listeners[1].nr_stuck = 1;
	after.listeners[1].queued = 7;
	EXPECT_KINDS("stuck", &before.status, &after.status, &seen, CHANGE_STUCK);
	cr_expect_eq(seen.changes[0].slot, 1);
	cr_expect_eq(seen.changes[0].count, 7);
	EXPECT_KINDS("still stuck", &after.status, &after.status, &seen);
	world_init(&before);
	before.listeners[1] = after.listeners[1];
	after.listeners[1].nr_rescues = 2;
	EXPECT_KINDS("rescued", &before.status, &after.status, &seen, CHANGE_RESCUED);
	cr_expect_eq(seen.changes[0].count, 2);
	before.listeners[1] = after.listeners[1];
	after.listeners[1].state = STATE_IDLE;
	EXPECT_KINDS("recovered", &before.status, &after.status, &seen, CHANGE_RECOVERED);
	world_init(&before);
	EXPECT_KINDS("all between two looks", &before.status, &after.status, &seen, CHANGE_STUCK,
		     CHANGE_RESCUED, CHANGE_RECOVERED);
}

Test(changes, every_setting_that_changes_is_told_with_both_values)
{
	struct world before, after;
	struct seen seen;

	world_init(&before);
	world_init(&after);
	after.group.settings.policy = POLICY_P2C;
	after.group.settings.slow_start_ns = 30000000000;
	EXPECT_KINDS("settings", &before.status, &after.status, &seen, CHANGE_SETTING,
		     CHANGE_SETTING);
	cr_expect_str_eq(seen.changes[0].setting, "policy");
	cr_expect_str_eq(seen.changes[0].from, "least-loaded");
	cr_expect_str_eq(seen.changes[0].to, "p2c");
	cr_expect_str_eq(seen.changes[1].setting, "slow-start");
	cr_expect_str_eq(seen.changes[1].from, "0");
	cr_expect_str_eq(seen.changes[1].to, "30s");
}

Test(changes, a_listener_is_found_in_any_group)
{
	struct world world;

	world_init(&world);
	cr_expect_eq(status_find_listener(&world.status, 12), &world.listeners[1]);
	cr_expect_null(status_find_listener(&world.status, 13));
	cr_expect_null(status_find_listener(&nothing, 11));
}

struct printed_case {
	struct change change;
	const char *text; /* what follows the time */
	const char *json; /* single quotes stand for double ones; without both times */
};

static const struct printed_case printed_cases[] = {
	{ { .kind = CHANGE_WATCHING, .count = 1 },
	  "watching; 1 group is steered\n",
	  "{'event':'watching','count':1}" },
	{ { .kind = CHANGE_LOST, .count = 2 },
	  "2 times listeners came or went too fast to be told\n",
	  "{'event':'lost','count':2}" },
	{ { .kind = CHANGE_JOINED,
	    .group = "[::1]:80",
	    .netns = 5,
	    .cookie = 11,
	    .pid = 7,
	    .comm = HOSTILE_COMM },
	  "[::1]:80 (netns 5): listener joined, pid 7 \\x1b[31m\\x0a\"\\x5c\\xff, cookie 11\n",
	  "{'event':'joined','group':'[::1]:80','netns':5,'cookie':11,'slot':null,'pid':7,"
	  "'comm':'\\\\x1b[31m\\\\x0a\\\"\\\\x5c\\\\xff'}" },
	{ { .kind = CHANGE_LEFT, .group = "g", .netns = 5, .cookie = 11, .has_slot = true },
	  "g (netns 5): listener left, slot 0, cookie 11\n",
	  "{'event':'left','group':'g','netns':5,'cookie':11,'slot':0,'pid':null,'comm':''}" },
	{ { .kind = CHANGE_WEIGHT,
	    .group = "g",
	    .netns = 5,
	    .cookie = 11,
	    .has_slot = true,
	    .slot = 3,
	    .pid = 7,
	    .comm = "a",
	    .from = "1",
	    .to = "2" },
	  "g (netns 5): weight 1 -> 2, slot 3, pid 7 a, cookie 11\n",
	  "{'event':'weight','group':'g','netns':5,'cookie':11,'slot':3,'pid':7,'comm':'a',"
	  "'from':'1','to':'2'}" },
	{ { .kind = CHANGE_STEERED, .group = "g", .netns = 5, .to = "p2c" },
	  "g (netns 5): steered by p2c\n",
	  "{'event':'steered','group':'g','netns':5,'to':'p2c'}" },
	{ { .kind = CHANGE_SETTING,
	    .group = "g",
	    .netns = 5,
	    .setting = "policy",
	    .from = "p2c",
	    .to = "hash" },
	  "g (netns 5): policy p2c -> hash\n",
	  "{'event':'setting','group':'g','netns':5,'setting':'policy','from':'p2c','to':'hash'}" },
	{ { .kind = CHANGE_IDLE },
	  "no group is steered any more; still watching\n",
	  "{'event':'idle'}" },
};

/* What print wrote, for the caller to free. */
static char *output_of(int (*print)(const struct change *, FILE *), const struct change *change)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert_not_null(out);
	cr_assert_eq(print(change, out), 0);
	fclose(out);
	return text;
}

static void expect_text(const struct printed_case *expected, const struct change *change)
{
	char *text = output_of(change_print_text, change);
	unsigned int hours, minutes, seconds, microseconds;
	int length = 0;

	cr_assert_eq(sscanf(text, "%2u:%2u:%2u.%6u %n", &hours, &minutes, &seconds, &microseconds,
			    &length),
		     4, "%s", text);
	cr_expect_eq(length, 16, "%s", text);
	cr_expect_str_eq(text + length, expected->text);
	free(text);
}

static void expect_json(const struct printed_case *expected, const struct change *change)
{
	char *text = output_of(change_print_json, change), *quoted = strdup(expected->json);
	json_t *actual = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *wanted;
	const char *time = json_string_value(json_object_get(actual, "time"));

	cr_assert_not_null(quoted);
	cr_expect_eq(strchr(text, '\n'), text + strlen(text) - 1, "one line: %s", text);
	cr_assert(time && strlen(time) == strlen("2026-12-01T00:00:00.000000Z"), "%s", text);
	cr_expect_eq((uint64_t)json_integer_value(json_object_get(actual, "monotonic_ns")),
		     change->time_ns);
	json_object_del(actual, "time");
	json_object_del(actual, "monotonic_ns");
	for (char *quote = strchr(quoted, '\''); quote; quote = strchr(quote, '\''))
		*quote = '"';
	wanted = json_loads(quoted, JSON_REJECT_DUPLICATES, NULL);
	cr_assert_not_null(wanted, "%s", quoted);
	cr_expect(json_equal(actual, wanted), "%s and not %s", text, quoted);
	json_decref(actual);
	json_decref(wanted);
	free(quoted);
	free(text);
}

Test(changes, each_is_one_line_for_people_and_one_of_json)
{
	for (size_t i = 0; i < COUNT(printed_cases); i++) {
		struct change change = printed_cases[i].change;

		change.time_ns = clock_now_ns();
		expect_text(&printed_cases[i], &change);
		expect_json(&printed_cases[i], &change);
	}
}
