/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/cleanup.h"
#include "base/version.h"
#include "show/metrics.h"
#include "support/exposition.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Colour, a new line, both quotes, bytes that are no UTF-8, and no NUL at the end. */
#define HOSTILE_COMM "\x1b[31m\n\"\\\xff},x=\"1"

static struct status_listener listeners[] = {
	{
		.slot = 0,
		.pid = 101,
		.comm = "nginx",
		.state = STATE_IDLE,
		.weight = 1,
		.held = 10,
		.worker_held = 14,
		.backlog = 511,
		.load = { .opened = 30, .closed = 20, .steered = 1, .migrated = 4 },
	},
	{
		.slot = 3,
		.pid = 102,
		.comm = HOSTILE_COMM,
		.gone = true,
		.draining = true,
		.weight = 2,
		.held = 11,
		.worker_held = 11,
		.half_open = 1,
		.queued = 2,
		.backlog = 511,
		.load = { .opened = UINT64_C(12345678901), .closed = 1, .steered = 2 },
	},
};

static struct status_group groups[] = {
	{
		.name = "127.0.0.1:80",
		.address = { 127, 0, 0, 1 },
		.family = AF_INET,
		.port = 80,
		.netns = 4026531840,
		.steered = true,
		.policy = POLICY_LEAST_LOADED,
		.outcomes = { [OUTCOME_SELECTED] = 3, [OUTCOME_EMPTY_SLOT] = 1 },
		.listeners = listeners,
		.nr_listeners = COUNT(listeners),
	},
	{
		.name = "[::1]:443",
		.address = { [15] = 1 },
		.family = AF_INET6,
		.port = 443,
		.netns = 5,
		.nr_missing = 7,
		.policy = POLICY_HASH,
	},
};

static const struct status status = { groups, COUNT(groups) };
static const struct status no_status = {};

/* What is printed, for the caller to free. */
static char *print(const struct status *subject)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert_not_null(out);
	cr_assert_eq(metrics_print(subject, out), 0);
	fclose(out);
	return text;
}

/* The labels of what the tests made up. */
#define GROUP_A "{group=\"127.0.0.1:80\",netns=\"4026531840\""
#define GROUP_B "{group=\"[::1]:443\",netns=\"5\""
#define SLOT_0 GROUP_A ",slot=\"0\""
#define SLOT_3 GROUP_A ",slot=\"3\""

#define FAMILY(name, type, help)                                                                   \
	"# HELP socksteer_" name " " help "\n# TYPE socksteer_" name " " type "\n"
#define SERIES(name, labels, value) "socksteer_" name labels "} " value "\n"
#define BOTH_GROUPS(name, a, b) SERIES(name, GROUP_A, a) SERIES(name, GROUP_B, b)
#define BOTH_SLOTS(name, first, second) SERIES(name, SLOT_0, first) SERIES(name, SLOT_3, second)
#define RUNS(outcome, a) SERIES("runs_total", GROUP_A ",outcome=\"" outcome "\"", a)
#define NO_RUNS(outcome) SERIES("runs_total", GROUP_B ",outcome=\"" outcome "\"", "0")
#define STATE(slot, state, value) SERIES("listener_state", slot ",state=\"" state "\"", value)
#define AGAIN "; starts again at zero when the slot gets another listener"

static const char expected_text[] = FAMILY("build_info", "gauge", "the program, and the layout of the maps it reads") "socksteer_build_info{version=\"" SOCKSTEER_VERSION "\",layout=\"%d\"} 1\n" FAMILY(
	"group_info", "gauge",
	"the policy by which the group is steered") SERIES("group_info",
							   GROUP_A ",policy=\"least-loaded\"",
							   "1") SERIES("group_info",
								       GROUP_B ",policy=\"hash\"",
								       "1")
	FAMILY("group_steered", "gauge", "1 if our program is attached to the group, 0 if the kernel's hash serves it") BOTH_GROUPS("group_steered", "1", "0") FAMILY(
		"group_listeners", "gauge",
		"listeners that have a slot") BOTH_GROUPS("group_listeners",
							  "2", "0") FAMILY("group_listeners_missing", "gauge",
									   "listeners that joined and have no slot yet; until they have, the kernel's hash "
									   "serves the group")
		BOTH_GROUPS("group_listeners_missing", "0", "7") FAMILY(
			"runs_total", "counter",
			"runs of the steering program by how the choice ended, which is not the number of "
			"connections; starts again at zero when the group is attached anew") RUNS("selected",
												  "3") RUNS("migrated", "0")
			RUNS("hash", "0") RUNS("no_listener", "0") RUNS("incomplete", "0") RUNS("empty_slot", "1") RUNS("other_group", "0") RUNS(
				"refused",
				"0") RUNS("not_tcp",
					  "0") RUNS("no_settings",
						    "0") NO_RUNS("selected") NO_RUNS("migrated") NO_RUNS("hash")
				NO_RUNS("no_listener") NO_RUNS("incomplete") NO_RUNS("empty_slot") NO_RUNS("other_group") NO_RUNS(
					"refused") NO_RUNS("not_tcp") NO_RUNS("no_settings") FAMILY("listener_info",
												    "gauge",
												    "the process that serves the listener")
					SERIES("listener_info", SLOT_0 ",pid=\"101\",comm=\"nginx\"", "1") SERIES(
						"listener_info",
						SLOT_3
						",pid=\"102\",comm="
						"\"\\\\x1b[31m\\\\x0a\\\"\\\\x5c\\\\xff},x=\\\"1\"",
						"1") FAMILY("listener_state", "gauge",
							    "1 for the state that the worker is in: idle (waits for events), busy, unattended "
							    "(nobody waits for the listener), gone (it closed), or unknown")
						STATE(SLOT_0, "unknown", "0") STATE(SLOT_0, "idle", "1") STATE(
							SLOT_0,
							"busy",
							"0") STATE(SLOT_0, "unattended",
								   "0") STATE(SLOT_0, "gone", "0")
							STATE(SLOT_3, "unknown", "0") STATE(SLOT_3, "idle", "0") STATE(
								SLOT_3,
								"busy",
								"0") STATE(SLOT_3, "unattended",
									   "0") STATE(SLOT_3, "gone", "1")
								FAMILY("listener_held", "gauge", "connections of this listener that are not closed yet") BOTH_SLOTS(
									"listener_held", "10",
									"11") FAMILY("listener_worker_held",
										     "gauge",
										     "the same over all listeners of its worker, which is what is compared; not for sums")
									BOTH_SLOTS("listener_worker_held", "14", "11") FAMILY("listener_half_open", "gauge", "handshakes begun and not finished") BOTH_SLOTS(
										"listener_half_open",
										"0",
										"1") FAMILY("listener_queued",
											    "gauge",
											    "connections that wait to be accepted") BOTH_SLOTS("listener_queued", "0", "2")
										FAMILY("listener_backlog", "gauge", "connections that may wait to be accepted") BOTH_SLOTS(
											"listener_backlog",
											"511",
											"511") FAMILY("listener_weight",
												      "gauge",
												      "share of load relative to the other workers")
											BOTH_SLOTS(
												"listener_weight",
												"1",
												"2") FAMILY("listener_draining",
													    "gauge",
													    "1 if the worker gets no new connections")
												BOTH_SLOTS(
													"listener_draining",
													"0",
													"1") FAMILY("listener_opened_total",
														    "counter",
														    "connections established, those seeded at attach included" AGAIN)
													BOTH_SLOTS(
														"listener_opened_total",
														"30",
														"12345678901") FAMILY("listener_closed_total",
																      "counter",
																      "connections that the worker closed" AGAIN)
														BOTH_SLOTS(
															"listener_closed_total",
															"20",
															"1") FAMILY("listener_steered_total",
																    "counter",
																    "handshakes steered here, retransmitted ones included" AGAIN)
															BOTH_SLOTS(
																"listener_steered_total",
																"1",
																"2") FAMILY("listener_migrated_total",
																	    "counter",
																	    "connections migrated here from closing listeners" AGAIN)
																BOTH_SLOTS(
																	"listener_migrated_total",
																	"4",
																	"0");

Test(show_metrics, the_text_has_every_figure_of_status)
{
	char *text CLEANUP(cleanup_free) = print(&status), expected[2 * sizeof(expected_text)];

	snprintf(expected, sizeof(expected), expected_text, LAYOUT_VERSION);
	cr_expect_str_eq(text, expected);
}

Test(show_metrics, the_text_keeps_the_rules_of_the_format)
{
	char *text CLEANUP(cleanup_free) = print(&status);
	char *nothing CLEANUP(cleanup_free) = print(&no_status);
	size_t nr_listener_series = 1 + NR_STATES + 1 + 7 + sizeof(struct load) / sizeof(__u64);

	cr_expect_eq(expect_exposition(text),
		     1 + COUNT(groups) * (4 + NR_OUTCOMES) + 2 * nr_listener_series);
	cr_expect_eq(expect_exposition(nothing), 1);
}

Test(show_metrics, a_name_of_any_bytes_keeps_the_rules_of_the_format)
{
	struct status_listener listener = {};
	struct status_group group = { .name = "0.0.0.0:1", .listeners = &listener };
	const struct status one = { &group, 1 };

	group.nr_listeners = 1;
	for (unsigned int first = 1; first <= UINT8_MAX; first++) {
		char *text CLEANUP(cleanup_free) = NULL;

		for (unsigned int i = 0; i < COMM_SIZE; i++)
			listener.comm[i] = (char)(first + i * 17);
		text = print(&one);
		expect_exposition(text);
	}
}

Test(show_metrics, of_two_groups_with_one_name_the_steered_one_is_shown)
{
	struct status_group twins[] = { groups[1], groups[1], groups[1] };
	const struct status all = { twins, COUNT(twins) };
	char *first CLEANUP(cleanup_free) = NULL, *second CLEANUP(cleanup_free) = NULL;

	twins[1].nr_missing = 8;
	first = print(&all);
	expect_exposition(first);
	cr_expect_eq(exposition_value(first, "socksteer_group_listeners_missing" GROUP_B "}"), 7);
	twins[1].steered = true;
	second = print(&all);
	expect_exposition(second);
	cr_expect_eq(exposition_value(second, "socksteer_group_listeners_missing" GROUP_B "}"), 8);
}

Test(show_metrics, an_output_that_cannot_be_written_is_an_error)
{
	FILE *full CLEANUP(cleanup_file) = fopen("/dev/full", "we");

	cr_assert_not_null(full);
	setvbuf(full, NULL, _IONBF, 0);
	cr_expect_eq(metrics_print(&status, full), -EIO);
	cr_expect_eq(metrics_print(&no_status, full), -EIO);
}

/* The table of README, from the one list. */
static const char counter_table[] = "| counter | counts |\n"
				    "|---|---|\n"
#define OUTCOME(NAME, name, text) "| `socksteer_runs_total{outcome=\"" #name "\"}` | " text " |\n"
#define LOAD_COUNTER(name, text) "| `socksteer_listener_" #name "_total` | " text " |\n"
#include "socksteer/counters.def"
				    "\n";

Test(show_metrics, readme_lists_the_counters_of_the_one_list)
{
	FILE *file CLEANUP(cleanup_file) = fopen("README.md", "re");
	char readme[65536];
	size_t size;

	if (!file)
		cr_skip_test("runs where README.md is");
	size = fread(readme, 1, sizeof(readme) - 1, file);
	cr_assert(feof(file));
	readme[size] = '\0';
	cr_expect(strstr(readme, counter_table), "README.md has not the table\n%s", counter_table);
}

/* The beginning of a text that is right so far. */
#define COUNTER "# HELP a_total text\n# TYPE a_total counter\n"
#define GAUGE "# HELP b text\n# TYPE b gauge\n"

static const char *const good_texts[] = {
	"",
	COUNTER GAUGE,
	COUNTER "a_total 1\n" GAUGE "b 0\n",
	GAUGE "b{c=\"\"} 1\nb{c=\"d\"} 1\nb{c=\"d\",e=\"\\\\ \\\" \\n {,}\"} 1\n",
};

static const struct {
	const char *text;
	const char *complaint;
} bad_texts[] = {
	{ COUNTER "a_total 1", "the last line has no end" },
	{ COUNTER "\n", "not a line of the format: " },
	{ COUNTER "a_total\n", "not a line of the format: a_total" },
	{ COUNTER "a_total x\n", "not a line of the format: a_total x" },
	{ COUNTER "a_total{} 1\n", "not a line of the format: a_total{} 1" },
	{ COUNTER "a_total{c=d} 1\n", "not a line of the format: a_total{c=d} 1" },
	{ COUNTER "a_total{c=\"\\x\"} 1\n", "not a line of the format: a_total{c=\"\\x\"} 1" },
	{ COUNTER "a_total{c=\"\"\"} 1\n", "not a line of the format: a_total{c=\"\"\"} 1" },
	{ COUNTER "a_total{c=\"d\",c=\"e\"} 1\n",
	  "a label stands twice: a_total{c=\"d\",c=\"e\"} 1" },
	{ GAUGE "b{c=\"d\"} 1\nb{c=\"d\"} 2\n", "the series stands twice: b{c=\"d\"} 2" },
	{ GAUGE "b 1\nb 1\n", "the series stands twice: b 1" },
	{ "# HELP B text\n", "not a line of the format: # HELP B text" },
	{ "# HELP b\n", "not a line of the format: # HELP b" },
	{ "# HELP b text\nb 1\n", "not in the family whose HELP and TYPE stand before it: b 1" },
	{ "# TYPE b gauge\n", "TYPE without HELP before it: # TYPE b gauge" },
	{ GAUGE "# TYPE b gauge\n", "the family has its TYPE already: # TYPE b gauge" },
	{ GAUGE "b 1\n" GAUGE, "the family has its HELP already: # HELP b text" },
	{ GAUGE COUNTER "b 1\n", "not in the family whose HELP and TYPE stand before it: b 1" },
	{ "# HELP a_total text\n# TYPE a_total gauge\n",
	  "_total is for counters, and they need it: # TYPE a_total gauge" },
	{ "# HELP b text\n# TYPE b counter\n",
	  "_total is for counters, and they need it: # TYPE b counter" },
	{ "# HELP b text\n# TYPE b summary\n", "not a line of the format: # TYPE b summary" },
};

Test(exposition, a_text_that_breaks_a_rule_is_told_from_one_that_keeps_all)
{
	char complaint[COMPLAINT_BYTES];

	for (size_t i = 0; i < COUNT(good_texts); i++)
		cr_expect(exposition_is_valid(good_texts[i], complaint), "%s", complaint);
	for (size_t i = 0; i < COUNT(bad_texts); i++) {
		cr_expect_not(exposition_is_valid(bad_texts[i].text, complaint), "%s",
			      bad_texts[i].text);
		cr_expect_str_eq(complaint, bad_texts[i].complaint);
	}
}
