/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How often a listener may be rescued, and what a rescue says.
 */
#include "show/rescue.h"
#include "steering/rescue.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS 1000000000ull
#define NOW_NS (1000 * SECOND_NS)

static const struct {
	const char *name;
	uint64_t window_ns; /* when the present minute began */
	uint32_t rescues;
	bool is_due;
	uint64_t window_after_ns; /* after one more */
	uint32_t rescues_after;
} rate_cases[] = {
	{ "never rescued", 0, 0, true, NOW_NS, 1 },
	{ "once, a moment ago", NOW_NS - 1, 1, true, NOW_NS - 1, 2 },
	{ "five times in a minute", NOW_NS - 30 * SECOND_NS, 5, true, NOW_NS - 30 * SECOND_NS, 6 },
	{ "six times in a minute", NOW_NS - 30 * SECOND_NS, 6, false, NOW_NS - 30 * SECOND_NS, 7 },
	{ "more often, by hand", NOW_NS - 30 * SECOND_NS, 9, false, NOW_NS - 30 * SECOND_NS, 10 },
	{ "the last moment", NOW_NS - 60 * SECOND_NS + 1, 6, false, NOW_NS - 60 * SECOND_NS + 1,
	  7 },
	{ "the minute is over", NOW_NS - 60 * SECOND_NS, 6, true, NOW_NS, 1 },
	{ "long ago", 1, 100, true, NOW_NS, 1 },
};

Test(rescue, six_in_a_minute_and_the_next_when_it_is_over)
{
	size_t i;

	for (i = 0; i < sizeof(rate_cases) / sizeof(rate_cases[0]); i++) {
		struct member member = {
			.rescue_window_ns = rate_cases[i].window_ns,
			.rescues_in_window = rate_cases[i].rescues,
			.nr_rescues = 40,
		};

		cr_expect_eq(rescue_is_due(&member, NOW_NS), rate_cases[i].is_due, "%s",
			     rate_cases[i].name);
		rescue_note(&member, NOW_NS);
		cr_expect_eq(member.rescue_window_ns, rate_cases[i].window_after_ns, "%s",
			     rate_cases[i].name);
		cr_expect_eq(member.rescues_in_window, rate_cases[i].rescues_after, "%s",
			     rate_cases[i].name);
		cr_expect_eq(member.nr_rescues, 41, "%s", rate_cases[i].name);
	}
}

static struct rescue_report listeners[] = {
	{ .slot = 2,
	  .cookie = 11,
	  .queued_before = 4,
	  .queued_after = 1,
	  .backlog_before = 511,
	  .backlog_after = 511,
	  .duration_ns = 900000 },
	{ .slot = 5,
	  .cookie = 12,
	  .was_stuck = true,
	  .queued_before = 1,
	  .backlog_before = 511,
	  .backlog_after = 128,
	  .duration_ns = 300000 },
};

struct printed {
	char *out;
	char *notes;
};

static void print(size_t first, size_t nr, struct printed *ret_printed)
{
	struct worker_rescue rescue = {
		.group = "127.0.0.1:80",
		.worker = "nginx:1234 (slots 2, 5)",
		.listeners = listeners + first,
		.nr_listeners = nr,
	};
	size_t length;
	FILE *out = open_memstream(&ret_printed->out, &length);
	FILE *notes = open_memstream(&ret_printed->notes, &length);

	cr_assert(out && notes);
	cr_assert_eq(rescue_print_text(&rescue, out, notes), 0);
	fclose(out);
	fclose(notes);
}

Test(rescue, says_how_many_moved_and_how_long_it_took)
{
	struct printed printed;

	print(0, 2, &printed);
	cr_expect_str_eq(printed.out,
			 "127.0.0.1:80: moved 5 connections of nginx:1234 (slots 2, 5) "
			 "to other workers in 1.2 ms\n");
	cr_expect_str_eq(printed.notes,
			 "socksteer: slot 5 had room for 511 connections in its queue and has room "
			 "for 128, as net.core.somaxconn says by now\n");
	free(printed.out);
	free(printed.notes);
}

Test(rescue, says_when_the_worker_was_not_stuck)
{
	struct printed printed;

	print(0, 1, &printed);
	cr_expect(strstr(printed.out, "moved 4 connections of"), "%s", printed.out);
	cr_expect_str_eq(
		printed.notes,
		"socksteer: nginx:1234 (slots 2, 5) was not stuck: it gets new connections as "
		"before, and EINVAL if it called accept() just then\n");
	free(printed.out);
	free(printed.notes);
}

Test(rescue, says_when_there_was_nothing_to_do)
{
	struct printed printed;

	print(0, 0, &printed);
	cr_expect_str_eq(printed.out,
			 "127.0.0.1:80: nothing waits for nginx:1234 (slots 2, 5), and "
			 "nothing was done\n");
	cr_expect_str_empty(printed.notes);
	free(printed.out);
	free(printed.notes);
}

Test(rescue, json_has_every_listener)
{
	static const char expected[] = "{\n"
				       "  \"group\": \"127.0.0.1:80\",\n"
				       "  \"worker\": \"nginx:1234\",\n"
				       "  \"moved\": 1,\n"
				       "  \"duration_ns\": 300000,\n"
				       "  \"listeners\": [\n"
				       "    {\n"
				       "      \"slot\": 5,\n"
				       "      \"cookie\": 12,\n"
				       "      \"stuck\": true,\n"
				       "      \"moved\": 1,\n"
				       "      \"queued\": 0,\n"
				       "      \"backlog\": 128,\n"
				       "      \"duration_ns\": 300000\n"
				       "    }\n"
				       "  ]\n"
				       "}\n";
	struct worker_rescue rescue = {
		.group = "127.0.0.1:80",
		.worker = "nginx:1234",
		.listeners = listeners + 1,
		.nr_listeners = 1,
	};
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	cr_assert(out);
	cr_assert_eq(rescue_print_json(&rescue, out), 0);
	fclose(out);
	cr_expect_str_eq(text, expected);
	free(text);
}
