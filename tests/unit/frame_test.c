/* SPDX-License-Identifier: GPL-2.0-only */
/* What top shows, as text, and what its keys do. */
#include "base/cleanup.h"
#include "show/frame.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define HOSTILE_COMM "\x1b[31m\n\"\\\xff"

#define SECOND_NS UINT64_C(1000000000)

/* Wider than any line that a test asks for. */
#define LINE_BYTES 512

static struct status_listener listeners_before[] = {
	{ .slot = 0, .cookie = 11, .load = { .steered = 100 } },
	{ .slot = 1, .cookie = 12, .load = { .steered = 200 } },
	{ .slot = 2, .cookie = 99, .load = { .steered = 5 } },
};

/* The one in slot 2 is another than before, the last one is new. */
static struct status_listener listeners_now[] = {
	{
		.slot = 0,
		.cookie = 11,
		.pid = 101,
		.comm = "nginx",
		.state = STATE_IDLE,
		.weight = 1,
		.held = 10,
		.backlog = 511,
		.load = { .steered = 150 },
	},
	{
		.slot = 1,
		.cookie = 12,
		.pid = 1234567,
		.comm = "sixteen-letters!",
		.state = STATE_UNATTENDED,
		.weight = 1000,
		.held = 40,
		.queued = 511,
		.backlog = 511,
		.load = { .steered = 225 },
	},
	{
		.slot = 2,
		.cookie = 13,
		.pid = 103,
		.comm = HOSTILE_COMM,
		.state = STATE_BUSY,
		.draining = true,
		.weight = 2,
		.held = 1,
		.queued = 1,
		.backlog = 511,
		.load = { .steered = 7 },
	},
	{
		.slot = 1023,
		.cookie = 14,
		.pid = 104,
		.comm = "nginx",
		.gone = true,
		.weight = 1,
		.backlog = 128,
	},
};

static struct status_group groups_before[] = {
	{
		.name = "127.0.0.1:80",
		.netns = 4026531840,
		.attached_ns = 1,
		.outcomes = { [OUTCOME_SELECTED] = 300, [OUTCOME_EMPTY_SLOT] = 1 },
		.listeners = listeners_before,
		.nr_listeners = COUNT(listeners_before),
	},
	/* Attached anew since: its counters are other ones. */
	{ .name = "[::1]:443", .netns = 5, .attached_ns = 1 },
};

static struct status_group groups_now[] = {
	{
		.name = "127.0.0.1:80",
		.netns = 4026531840,
		.attached_ns = 1,
		.steered = true,
		.policy = POLICY_LEAST_LOADED,
		.outcomes = { [OUTCOME_SELECTED] = 375, [OUTCOME_EMPTY_SLOT] = 2 },
		.listeners = listeners_now,
		.nr_listeners = COUNT(listeners_now),
	},
	{
		.name = "[::1]:443",
		.netns = 5,
		.attached_ns = 2,
		.policy = POLICY_HASH,
		.nr_missing = 2,
		.outcomes = { [OUTCOME_HASH] = 9 },
	},
};

static const struct status before = { .groups = groups_before, .nr_groups = COUNT(groups_before) };
static const struct status now = { .groups = groups_now, .nr_groups = COUNT(groups_now) };
static const struct status nothing = {};

/* Half a second has gone by. */
static void build(const struct view *view, struct frame *ret_frame)
{
	cr_assert_eq(frame_build(&before, &now, SECOND_NS / 2, view, ret_frame), 0);
}

/* All lines, each ended by a line feed, for the caller to free. */
static char *text_of(const struct frame *frame, size_t width)
{
	char *text = NULL, line[LINE_BYTES];
	size_t size, i;
	FILE *out = open_memstream(&text, &size);

	cr_assert_not_null(out);
	frame_columns(width, line);
	fprintf(out, "%s\n", line);
	for (i = 0; i < frame->nr_rows; i++) {
		frame_line(frame, i, width, line);
		fprintf(out, "%s\n", line);
	}
	fclose(out);
	return text;
}

static void expect_text(size_t width, const char *expected)
{
	struct frame frame CLEANUP(frame_done) = {};
	const struct view view = {};
	char *text;

	build(&view, &frame);
	text = text_of(&frame, width);
	cr_expect_str_eq(text, expected, "%zu columns:\n%s", width, text);
	free(text);
}

Test(frame, on_40_columns_is_what_matters_most)
{
	expect_text(40, "SLOT     PID STATE   HELD QUEUED    RATE\n"
			"127.0.0.1:80: least-loaded, 4 listeners,\n"
			"per second: selected 150.0, empty_slot 2\n"
			"   0     101 idle      10      0   100.0\n"
			"   1 1234567 unatt     40    511    50.0\n"
			"   2     103 drain      1      1       -\n"
			"1023     104 gone       0      0       -\n"
			"\n"
			"[::1]:443: NOT STEERED, hash, 0 listener\n"
			"per second: selected -, hash -\n");
}

Test(frame, on_80_columns_are_bars_and_escaped_names)
{
	expect_text(
		80,
		"SLOT     PID COMMAND      STATE      WEIGHT   HELD          QUEUED          RATE\n"
		"127.0.0.1:80: least-loaded, 4 listeners, netns 4026531840\n"
		"per second: selected 150.0, empty_slot 2.0\n"
		"   0     101 nginx        idle            1     10 #         0/511         100.0\n"
		"   1 1234567 sixteen-lett unattended   1000     40 #####   511/511 #####    50.0\n"
		"   2     103 \\x1b[31m\\x0a draining        2      1 #         1/511 #           -\n"
		"1023     104 nginx        gone            1      0           0/128             -\n"
		"\n"
		"[::1]:443: NOT STEERED, hash, 0 listeners, 2 WITHOUT A SLOT, netns 5\n"
		"per second: selected -, hash -\n");
}

#define BAR_10 "##########"
#define BLANK_10 "          "

Test(frame, on_200_columns_bars_have_forty_steps)
{
	expect_text(
		200,
		"SLOT     PID COMMAND          STATE      WEIGHT   HELD " BLANK_10 BLANK_10 BLANK_10
			BLANK_10 "    QUEUED " BLANK_10 BLANK_10 BLANK_10 BLANK_10 "    RATE\n"
		"127.0.0.1:80: least-loaded, 4 listeners, netns 4026531840\n"
		"per second: selected 150.0, empty_slot 2.0\n"
		"   0     101 nginx            idle            1     10 " BAR_10 BLANK_10 BLANK_10
			BLANK_10 "     0/511 " BLANK_10 BLANK_10 BLANK_10 BLANK_10 "   100.0\n"
		"   1 1234567 sixteen-letters! unattended   1000     40 " BAR_10 BAR_10 BAR_10 BAR_10
		"   511/511 " BAR_10 BAR_10 BAR_10 BAR_10 "    50.0\n"
		"   2     103 \\x1b[31m\\x0a\"\\x5 draining        2      1 #         " BLANK_10
			BLANK_10 BLANK_10 "     1/511 #         " BLANK_10 BLANK_10 BLANK_10
		"       -\n"
		"1023     104 nginx            gone            1      0 " BLANK_10 BLANK_10 BLANK_10
			BLANK_10 "     0/128 " BLANK_10 BLANK_10 BLANK_10 BLANK_10 "       -\n"
		"\n"
		"[::1]:443: NOT STEERED, hash, 0 listeners, 2 WITHOUT A SLOT, netns 5\n"
		"per second: selected -, hash -\n");
}

Test(frame, nothing_steered_says_so)
{
	struct frame frame CLEANUP(frame_done) = {};
	const struct view view = {};
	char line[LINE_BYTES];

	cr_assert_eq(frame_build(&nothing, &nothing, 0, &view, &frame), 0);
	cr_expect_eq(frame.nr_rows, 1);
	frame_line(&frame, 0, 80, line);
	cr_expect_str_eq(line, "No group is steered.");
	frame_line(&frame, 1, 80, line);
	cr_expect_str_eq(line, "", "a row that is not there is empty");
}

Test(frame, the_title_tells_order_and_pause)
{
	struct frame frame CLEANUP(frame_done) = {};
	struct view view = { .sort = SORT_HELD, .reverse = true, .paused = true };
	char line[LINE_BYTES];

	build(&view, &frame);
	frame_title(&frame, &view, "12:00:01", 80, line);
	cr_expect_str_eq(line, "PAUSED 12:00:01  by held, reversed  2 groups, 4 listeners");
	view = (struct view){};
	frame_title(&frame, &view, "12:00:01", 20, line);
	cr_expect_str_eq(line, "12:00:01  by slot  2");
}

/* A group of so many workers, each with other figures. */
#define MANY 1000

static void many_workers(struct status_listener many[MANY], struct status_group *ret_group)
{
	uint32_t i;

	for (i = 0; i < MANY; i++) {
		many[i] = (struct status_listener){
			.slot = i,
			.cookie = i + 1,
			.pid = 4000000 - (i * 7919) % 1009,
			.comm = HOSTILE_COMM,
			.state = i % NR_STATES,
			.weight = 1 + i,
			.held = (i * 31) % 997,
			.queued = (i * 17) % 129,
			.backlog = 128,
			.load = { .steered = (i * 13) % 991 },
		};
	}
	*ret_group = (struct status_group){
		.name = "[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535",
		.steered = true,
		.listeners = many,
		.nr_listeners = MANY,
	};
}

static size_t count_bar(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += *text == '#';
	return count;
}

Test(frame, no_line_of_a_thousand_workers_is_too_wide_or_unprintable)
{
	static const size_t widths[] = { 1, 20, 39, 40, 59, 60, 79, 80, 81, 120, 200, 500 };
	static struct status_listener many[MANY];
	struct frame frame CLEANUP(frame_done) = {};
	struct status_group group;
	const struct status status = { .groups = &group, .nr_groups = 1 };
	const struct view view = {};
	char line[LINE_BYTES];

	many_workers(many, &group);
	cr_assert_eq(frame_build(&status, &status, SECOND_NS, &view, &frame), 0);
	cr_assert_eq(frame.nr_rows, MANY + 2);
	for (size_t w = 0; w < COUNT(widths); w++)
		for (size_t row = 0; row < frame.nr_rows; row++) {
			memset(line, '\n', sizeof(line));
			frame_line(&frame, row, widths[w], line);
			cr_assert_leq(strnlen(line, sizeof(line)), widths[w], "row %zu", row);
			for (const char *byte = line; *byte; byte++)
				cr_assert(isprint((unsigned char)*byte), "row %zu: %d", row, *byte);
		}
}

/* The number by which a row is sorted, loads negated, because they fall. */
static double sort_value(const struct frame_row *row, enum sort_key sort)
{
	const struct status_listener *listener = row->listener;

	switch (sort) {
	case SORT_PID:
		return listener->pid;
	case SORT_HELD:
		return -(double)listener->held;
	case SORT_QUEUED:
		return -(double)listener->queued;
	case SORT_RATE:
		return -row->rate;
	default:
		return listener->slot;
	}
}

Test(frame, a_thousand_workers_are_in_order_of_each_key_both_ways)
{
	static struct status_listener many[MANY], earlier[MANY];
	struct status_group group, group_before;
	const struct status status = { .groups = &group, .nr_groups = 1 },
			    status_before = { .groups = &group_before, .nr_groups = 1 };

	many_workers(many, &group);
	many_workers(earlier, &group_before);
	for (size_t i = 0; i < MANY; i++)
		earlier[i].load.steered = 0;
	for (struct view view = {}; view.sort < NR_SORT_KEYS;
	     view.sort += view.reverse, view.reverse = !view.reverse) {
		struct frame frame CLEANUP(frame_done) = {};

		cr_assert_eq(frame_build(&status_before, &status, SECOND_NS, &view, &frame), 0);
		for (size_t row = 3; row < frame.nr_rows; row++) {
			double upper = sort_value(&frame.rows[row - 1], view.sort);
			double lower = sort_value(&frame.rows[row], view.sort);

			cr_assert(view.reverse ? upper >= lower : upper <= lower, "by %s, row %zu",
				  sort_key_name(view.sort), row);
		}
	}
}

Test(frame, bars_are_as_long_as_what_they_stand_for)
{
	static struct status_listener many[MANY];
	struct frame frame CLEANUP(frame_done) = {};
	struct status_group group;
	const struct status status = { .groups = &group, .nr_groups = 1 };
	const struct view view = { .sort = SORT_HELD };
	size_t last = SIZE_MAX, length;
	char line[LINE_BYTES];

	many_workers(many, &group);
	for (size_t i = 0; i < MANY; i++)
		many[i].queued = 0;
	cr_assert_eq(frame_build(&status, &status, SECOND_NS, &view, &frame), 0);
	for (size_t row = 2; row < frame.nr_rows; row++) {
		const struct status_listener *listener = frame.rows[row].listener;

		frame_line(&frame, row, 200, line);
		length = count_bar(line);
		cr_assert_leq(length, last, "row %zu", row);
		cr_assert_eq(length > 0, listener->held > 0, "row %zu", row);
		last = length;
	}
	frame_line(&frame, 2, 200, line);
	cr_expect_eq(count_bar(line), 40, "the longest is full");
}

Test(view, keys_sort_reverse_pause_help_and_quit)
{
	struct view view = {};

	for (size_t i = 1; i <= NR_SORT_KEYS; i++) {
		cr_expect(view_press(&view, 's', 100, 10));
		cr_expect_eq(view.sort, i % NR_SORT_KEYS);
	}
	cr_expect(view_press(&view, 'r', 100, 10) && view.reverse);
	cr_expect(view_press(&view, 'p', 100, 10) && view.paused);
	cr_expect(view_press(&view, ' ', 100, 10) && !view.paused);
	cr_expect(view_press(&view, '?', 100, 10) && view.help);
	cr_expect(view_press(&view, 'h', 100, 10) && !view.help);
	cr_expect(view_press(&view, 'h', 100, 10) && view.help);
	cr_expect(view_press(&view, 0, 100, 10) && !view.help, "any key closes the help");
	cr_expect(!view_press(&view, 'q', 100, 10));
}

Test(view, moving_stays_within_the_list)
{
	static const struct {
		const char *name;
		int key;
		size_t first;
	} steps[] = {
		{ "up at the top", VIEW_UP, 0 },
		{ "page up at the top", VIEW_PAGE_UP, 0 },
		{ "down", VIEW_DOWN, 1 },
		{ "page down", VIEW_PAGE_DOWN, 11 },
		{ "page up", VIEW_PAGE_UP, 1 },
		{ "end", VIEW_END, 90 },
		{ "down at the end", VIEW_DOWN, 90 },
		{ "page down at the end", VIEW_PAGE_DOWN, 90 },
		{ "up", VIEW_UP, 89 },
		{ "home", VIEW_HOME, 0 },
	};
	struct view view = {};

	for (size_t i = 0; i < COUNT(steps); i++) {
		cr_expect(view_press(&view, steps[i].key, 100, 10));
		cr_expect_eq(view.first, steps[i].first, "%s: %zu", steps[i].name, view.first);
	}
	view_press(&view, VIEW_END, 100, 10);
	view_clamp(&view, 50, 10);
	cr_expect_eq(view.first, 40, "rows have gone");
	view_clamp(&view, 5, 10);
	cr_expect_eq(view.first, 0, "all of it fits");
}

Test(view, the_help_fits_the_smallest_terminal)
{
	size_t nr_lines = 0;

	for (; view_help[nr_lines]; nr_lines++)
		cr_expect_leq(strlen(view_help[nr_lines]), 40, "%s", view_help[nr_lines]);
	cr_expect_leq(nr_lines, 7);
}
