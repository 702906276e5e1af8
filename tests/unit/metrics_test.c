/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/cleanup.h"
#include "base/version.h"
#include "show/metrics.h"
#include "socksteer/policy.h"
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
		.slow_start_percent = 37,
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
		.head_ms = 70,
		.nr_stuck = 2,
		.nr_rescues = 1,
		.draining = true,
		.weight = 2,
		.slow_start_percent = 100,
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
		.settings = { .slow_start_ns = 1500000000,
			      .busy_penalty = DEFAULT_BUSY_PENALTY,
			      .stuck_after_ns = 100000000 },
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

static const struct status status = { .groups = groups, .nr_groups = COUNT(groups) };
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

/* Back quotes stand for double ones. */
static const char expected_text[] =
	"# HELP socksteer_build_info the program, and the layout of the maps it reads\n"
	"# TYPE socksteer_build_info gauge\n"
	"socksteer_build_info{version=`%s`,layout=`%d`} 1\n"
	"# HELP socksteer_audit_runs_total audits that were to repair\n"
	"# TYPE socksteer_audit_runs_total counter\n"
	"socksteer_audit_runs_total 0\n"
	"# HELP socksteer_audit_moved_total connections charged to the worker that holds them, after a migration or to nobody before\n"
	"# TYPE socksteer_audit_moved_total counter\n"
	"socksteer_audit_moved_total 0\n"
	"# HELP socksteer_audit_adjusted_total connections by which counters were off, and were mended\n"
	"# TYPE socksteer_audit_adjusted_total counter\n"
	"socksteer_audit_adjusted_total 0\n"
	"# HELP socksteer_group_info the policy by which the group is steered\n"
	"# TYPE socksteer_group_info gauge\n"
	"socksteer_group_info{group=`127.0.0.1:80`,netns=`4026531840`,policy=`least-loaded`} 1\n"
	"socksteer_group_info{group=`[::1]:443`,netns=`5`,policy=`hash`} 1\n"
	"# HELP socksteer_group_steered 1 if our program is attached to the group, 0 if the kernel's hash serves it\n"
	"# TYPE socksteer_group_steered gauge\n"
	"socksteer_group_steered{group=`127.0.0.1:80`,netns=`4026531840`} 1\n"
	"socksteer_group_steered{group=`[::1]:443`,netns=`5`} 0\n"
	"# HELP socksteer_group_listeners listeners that have a slot\n"
	"# TYPE socksteer_group_listeners gauge\n"
	"socksteer_group_listeners{group=`127.0.0.1:80`,netns=`4026531840`} 2\n"
	"socksteer_group_listeners{group=`[::1]:443`,netns=`5`} 0\n"
	"# HELP socksteer_group_listeners_missing listeners that joined and have no slot yet; until they have, the kernel's hash serves the group\n"
	"# TYPE socksteer_group_listeners_missing gauge\n"
	"socksteer_group_listeners_missing{group=`127.0.0.1:80`,netns=`4026531840`} 0\n"
	"socksteer_group_listeners_missing{group=`[::1]:443`,netns=`5`} 7\n"
	"# HELP socksteer_group_slow_start_seconds the setting slow-start: a listener that joins reaches its full share after this\n"
	"# TYPE socksteer_group_slow_start_seconds gauge\n"
	"socksteer_group_slow_start_seconds{group=`127.0.0.1:80`,netns=`4026531840`} 1.5\n"
	"socksteer_group_slow_start_seconds{group=`[::1]:443`,netns=`5`} 0\n"
	"# HELP socksteer_group_busy_penalty_connections the setting busy-penalty: what a worker weighs more while its event loop runs a handler\n"
	"# TYPE socksteer_group_busy_penalty_connections gauge\n"
	"socksteer_group_busy_penalty_connections{group=`127.0.0.1:80`,netns=`4026531840`} 0.5\n"
	"socksteer_group_busy_penalty_connections{group=`[::1]:443`,netns=`5`} 0\n"
	"# HELP socksteer_group_stuck_after_seconds the setting stuck-after: a queue whose first connection is not accepted for this is stuck\n"
	"# TYPE socksteer_group_stuck_after_seconds gauge\n"
	"socksteer_group_stuck_after_seconds{group=`127.0.0.1:80`,netns=`4026531840`} 0.1\n"
	"socksteer_group_stuck_after_seconds{group=`[::1]:443`,netns=`5`} 0\n"
	"# HELP socksteer_runs_total runs of the steering program by how the choice ended, which is not the number of connections; starts again at zero when the group is attached anew\n"
	"# TYPE socksteer_runs_total counter\n"
	"socksteer_runs_total{group=`127.0.0.1:80`,netns=`4026531840`,outcome=`selected`} 3\n"
	"socksteer_runs_total{group=`127.0.0.1:80`,netns=`4026531840`,outcome=`migrated`} 0\n"
	"socksteer_runs_total{group=`127.0.0.1:80`,netns=`4026531840`,outcome=`hash`} 0\n"
	"socksteer_runs_total{group=`127.0.0.1:80`,netns=`4026531840`,outcome=`no_listener`} 0\n"
	"socksteer_runs_total{group=`127.0.0.1:80`,netns=`4026531840`,outcome=`incomplete`} 0\n"
	"socksteer_runs_total{group=`127.0.0.1:80`,netns=`4026531840`,outcome=`empty_slot`} 1\n"
	"socksteer_runs_total{group=`127.0.0.1:80`,netns=`4026531840`,outcome=`other_group`} 0\n"
	"socksteer_runs_total{group=`127.0.0.1:80`,netns=`4026531840`,outcome=`refused`} 0\n"
	"socksteer_runs_total{group=`127.0.0.1:80`,netns=`4026531840`,outcome=`not_tcp`} 0\n"
	"socksteer_runs_total{group=`127.0.0.1:80`,netns=`4026531840`,outcome=`no_settings`} 0\n"
	"socksteer_runs_total{group=`[::1]:443`,netns=`5`,outcome=`selected`} 0\n"
	"socksteer_runs_total{group=`[::1]:443`,netns=`5`,outcome=`migrated`} 0\n"
	"socksteer_runs_total{group=`[::1]:443`,netns=`5`,outcome=`hash`} 0\n"
	"socksteer_runs_total{group=`[::1]:443`,netns=`5`,outcome=`no_listener`} 0\n"
	"socksteer_runs_total{group=`[::1]:443`,netns=`5`,outcome=`incomplete`} 0\n"
	"socksteer_runs_total{group=`[::1]:443`,netns=`5`,outcome=`empty_slot`} 0\n"
	"socksteer_runs_total{group=`[::1]:443`,netns=`5`,outcome=`other_group`} 0\n"
	"socksteer_runs_total{group=`[::1]:443`,netns=`5`,outcome=`refused`} 0\n"
	"socksteer_runs_total{group=`[::1]:443`,netns=`5`,outcome=`not_tcp`} 0\n"
	"socksteer_runs_total{group=`[::1]:443`,netns=`5`,outcome=`no_settings`} 0\n"
	"# HELP socksteer_listener_info the process that serves the listener\n"
	"# TYPE socksteer_listener_info gauge\n"
	"socksteer_listener_info{group=`127.0.0.1:80`,netns=`4026531840`,slot=`0`,pid=`101`,comm=`nginx`} 1\n"
	"socksteer_listener_info{group=`127.0.0.1:80`,netns=`4026531840`,slot=`3`,pid=`102`,comm=`\\\\x1b[31m\\\\x0a\\`\\\\x5c\\\\xff},x=\\`1`} 1\n"
	"# HELP socksteer_listener_state 1 for the state that the worker is in: idle (waits for events), busy, unattended (nobody waits for the listener), stuck (it does not accept what is queued), gone (it closed), or unknown\n"
	"# TYPE socksteer_listener_state gauge\n"
	"socksteer_listener_state{group=`127.0.0.1:80`,netns=`4026531840`,slot=`0`,state=`unknown`} 0\n"
	"socksteer_listener_state{group=`127.0.0.1:80`,netns=`4026531840`,slot=`0`,state=`idle`} 1\n"
	"socksteer_listener_state{group=`127.0.0.1:80`,netns=`4026531840`,slot=`0`,state=`busy`} 0\n"
	"socksteer_listener_state{group=`127.0.0.1:80`,netns=`4026531840`,slot=`0`,state=`unattended`} 0\n"
	"socksteer_listener_state{group=`127.0.0.1:80`,netns=`4026531840`,slot=`0`,state=`stuck`} 0\n"
	"socksteer_listener_state{group=`127.0.0.1:80`,netns=`4026531840`,slot=`0`,state=`gone`} 0\n"
	"socksteer_listener_state{group=`127.0.0.1:80`,netns=`4026531840`,slot=`3`,state=`unknown`} 0\n"
	"socksteer_listener_state{group=`127.0.0.1:80`,netns=`4026531840`,slot=`3`,state=`idle`} 0\n"
	"socksteer_listener_state{group=`127.0.0.1:80`,netns=`4026531840`,slot=`3`,state=`busy`} 0\n"
	"socksteer_listener_state{group=`127.0.0.1:80`,netns=`4026531840`,slot=`3`,state=`unattended`} 0\n"
	"socksteer_listener_state{group=`127.0.0.1:80`,netns=`4026531840`,slot=`3`,state=`stuck`} 0\n"
	"socksteer_listener_state{group=`127.0.0.1:80`,netns=`4026531840`,slot=`3`,state=`gone`} 1\n"
	"# HELP socksteer_listener_held connections of this listener that are not closed yet\n"
	"# TYPE socksteer_listener_held gauge\n"
	"socksteer_listener_held{group=`127.0.0.1:80`,netns=`4026531840`,slot=`0`} 10\n"
	"socksteer_listener_held{group=`127.0.0.1:80`,netns=`4026531840`,slot=`3`} 11\n"
	"# HELP socksteer_listener_worker_held the same over all listeners of its worker, which is what is compared; not for sums\n"
	"# TYPE socksteer_listener_worker_held gauge\n"
	"socksteer_listener_worker_held{group=`127.0.0.1:80`,netns=`4026531840`,slot=`0`} 14\n"
	"socksteer_listener_worker_held{group=`127.0.0.1:80`,netns=`4026531840`,slot=`3`} 11\n"
	"# HELP socksteer_listener_half_open handshakes begun and not finished\n"
	"# TYPE socksteer_listener_half_open gauge\n"
	"socksteer_listener_half_open{group=`127.0.0.1:80`,netns=`4026531840`,slot=`0`} 0\n"
	"socksteer_listener_half_open{group=`127.0.0.1:80`,netns=`4026531840`,slot=`3`} 1\n"
	"# HELP socksteer_listener_queued connections that wait to be accepted\n"
	"# TYPE socksteer_listener_queued gauge\n"
	"socksteer_listener_queued{group=`127.0.0.1:80`,netns=`4026531840`,slot=`0`} 0\n"
	"socksteer_listener_queued{group=`127.0.0.1:80`,netns=`4026531840`,slot=`3`} 2\n"
	"# HELP socksteer_listener_backlog connections that may wait to be accepted\n"
	"# TYPE socksteer_listener_backlog gauge\n"
	"socksteer_listener_backlog{group=`127.0.0.1:80`,netns=`4026531840`,slot=`0`} 511\n"
	"socksteer_listener_backlog{group=`127.0.0.1:80`,netns=`4026531840`,slot=`3`} 511\n"
	"# HELP socksteer_listener_head_seconds how long the first of them has been seen waiting, as of the last look\n"
	"# TYPE socksteer_listener_head_seconds gauge\n"
	"socksteer_listener_head_seconds{group=`127.0.0.1:80`,netns=`4026531840`,slot=`0`} 0\n"
	"socksteer_listener_head_seconds{group=`127.0.0.1:80`,netns=`4026531840`,slot=`3`} 0.07\n"
	"# HELP socksteer_listener_stuck_total how often the listener was found stuck; starts again at zero when the slot gets another listener\n"
	"# TYPE socksteer_listener_stuck_total counter\n"
	"socksteer_listener_stuck_total{group=`127.0.0.1:80`,netns=`4026531840`,slot=`0`} 0\n"
	"socksteer_listener_stuck_total{group=`127.0.0.1:80`,netns=`4026531840`,slot=`3`} 2\n"
	"# HELP socksteer_listener_rescues_total how often its queue was moved to other workers; starts again at zero when the slot gets another listener\n"
	"# TYPE socksteer_listener_rescues_total counter\n"
	"socksteer_listener_rescues_total{group=`127.0.0.1:80`,netns=`4026531840`,slot=`0`} 0\n"
	"socksteer_listener_rescues_total{group=`127.0.0.1:80`,netns=`4026531840`,slot=`3`} 1\n"
	"# HELP socksteer_listener_weight share of load relative to the other workers\n"
	"# TYPE socksteer_listener_weight gauge\n"
	"socksteer_listener_weight{group=`127.0.0.1:80`,netns=`4026531840`,slot=`0`} 1\n"
	"socksteer_listener_weight{group=`127.0.0.1:80`,netns=`4026531840`,slot=`3`} 2\n"
	"# HELP socksteer_listener_draining 1 if the worker gets no new connections\n"
	"# TYPE socksteer_listener_draining gauge\n"
	"socksteer_listener_draining{group=`127.0.0.1:80`,netns=`4026531840`,slot=`0`} 0\n"
	"socksteer_listener_draining{group=`127.0.0.1:80`,netns=`4026531840`,slot=`3`} 1\n"
	"# HELP socksteer_listener_slow_start_ratio how much of its share the listener has reached since it joined\n"
	"# TYPE socksteer_listener_slow_start_ratio gauge\n"
	"socksteer_listener_slow_start_ratio{group=`127.0.0.1:80`,netns=`4026531840`,slot=`0`} 0.37\n"
	"socksteer_listener_slow_start_ratio{group=`127.0.0.1:80`,netns=`4026531840`,slot=`3`} 1\n"
	"# HELP socksteer_listener_opened_total connections established, those seeded at attach included; starts again at zero when the slot gets another listener\n"
	"# TYPE socksteer_listener_opened_total counter\n"
	"socksteer_listener_opened_total{group=`127.0.0.1:80`,netns=`4026531840`,slot=`0`} 30\n"
	"socksteer_listener_opened_total{group=`127.0.0.1:80`,netns=`4026531840`,slot=`3`} 12345678901\n"
	"# HELP socksteer_listener_closed_total connections that the worker closed; starts again at zero when the slot gets another listener\n"
	"# TYPE socksteer_listener_closed_total counter\n"
	"socksteer_listener_closed_total{group=`127.0.0.1:80`,netns=`4026531840`,slot=`0`} 20\n"
	"socksteer_listener_closed_total{group=`127.0.0.1:80`,netns=`4026531840`,slot=`3`} 1\n"
	"# HELP socksteer_listener_steered_total handshakes steered here, retransmitted ones included; starts again at zero when the slot gets another listener\n"
	"# TYPE socksteer_listener_steered_total counter\n"
	"socksteer_listener_steered_total{group=`127.0.0.1:80`,netns=`4026531840`,slot=`0`} 1\n"
	"socksteer_listener_steered_total{group=`127.0.0.1:80`,netns=`4026531840`,slot=`3`} 2\n"
	"# HELP socksteer_listener_migrated_total connections migrated here from closing listeners; starts again at zero when the slot gets another listener\n"
	"# TYPE socksteer_listener_migrated_total counter\n"
	"socksteer_listener_migrated_total{group=`127.0.0.1:80`,netns=`4026531840`,slot=`0`} 4\n"
	"socksteer_listener_migrated_total{group=`127.0.0.1:80`,netns=`4026531840`,slot=`3`} 0\n";

Test(show_metrics, the_text_has_every_figure_of_status)
{
	char *text CLEANUP(cleanup_free) = print(&status), expected[2 * sizeof(expected_text)];

	snprintf(expected, sizeof(expected), expected_text, SOCKSTEER_VERSION, LAYOUT_VERSION);
	for (char *quote = strchr(expected, '`'); quote; quote = strchr(quote, '`'))
		*quote = '"';
	cr_expect_str_eq(text, expected);
}

/* Of no group: what the program is, and what audits did. */
enum {
	NR_MACHINE_SERIES = 1
#define AUDIT_COUNTER(name, text) +1
#include "socksteer/counters.def"
};

Test(show_metrics, the_text_keeps_the_rules_of_the_format)
{
	char *text CLEANUP(cleanup_free) = print(&status);
	char *nothing CLEANUP(cleanup_free) = print(&no_status);
	size_t nr_listener_series = 1 + NR_STATES + 1 + 11 + sizeof(struct load) / sizeof(__u64);

	cr_expect_eq(expect_exposition(text), NR_MACHINE_SERIES +
						      COUNT(groups) * (7 + NR_OUTCOMES) +
						      2 * nr_listener_series);
	cr_expect_eq(expect_exposition(nothing), NR_MACHINE_SERIES);
}

Test(show_metrics, a_name_of_any_bytes_keeps_the_rules_of_the_format)
{
	struct status_listener listener = {};
	struct status_group group = { .name = "0.0.0.0:1", .listeners = &listener };
	const struct status one = { .groups = &group, .nr_groups = 1 };

	group.nr_listeners = 1;
	for (unsigned int first = 1; first <= UINT8_MAX; first++) {
		char *text CLEANUP(cleanup_free) = NULL;

		for (unsigned int i = 0; i < COMM_SIZE; i++)
			listener.comm[i] = (char)(first + i * 17);
		text = print(&one);
		expect_exposition(text);
	}
}

#define MISSING "socksteer_group_listeners_missing{group=\"[::1]:443\",netns=\"5\"}"

Test(show_metrics, of_two_groups_with_one_name_the_steered_one_is_shown)
{
	struct status_group twins[] = { groups[1], groups[1], groups[1] };
	const struct status all = { .groups = twins, .nr_groups = COUNT(twins) };
	char *first CLEANUP(cleanup_free) = NULL, *second CLEANUP(cleanup_free) = NULL;

	twins[1].nr_missing = 8;
	first = print(&all);
	expect_exposition(first);
	cr_expect_eq(exposition_value(first, MISSING), 7);
	twins[1].steered = true;
	second = print(&all);
	expect_exposition(second);
	cr_expect_eq(exposition_value(second, MISSING), 8);
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
#define AUDIT_COUNTER(name, text) "| `socksteer_audit_" #name "_total` | " text " |\n"
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
