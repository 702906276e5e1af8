/* SPDX-License-Identifier: GPL-2.0-only */
#include "show/list.h"
#include "show/status.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <jansson.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Two words of colour and a new line: what a process may call itself. */
#define HOSTILE_COMM "\x1b[31m\n\"\\\xff"

/* What print(subject, FILE *) wrote, for the caller to free. */
#define OUTPUT_OF(print, subject)                                                                  \
	({                                                                                         \
		char *output_ = NULL;                                                              \
		size_t size_;                                                                      \
		FILE *stream_ = open_memstream(&output_, &size_);                                  \
		int err_;                                                                          \
		cr_assert_not_null(stream_);                                                       \
		err_ = print(subject, stream_);                                                    \
		fclose(stream_);                                                                   \
		cr_assert_eq(err_, 0, #print " gives %d", err_);                                   \
		output_;                                                                           \
	})

#define EXPECT_OUTPUT(print, subject, expected)                                                    \
	do {                                                                                       \
		char *text_ = OUTPUT_OF(print, subject);                                           \
		cr_expect_str_eq(text_, expected);                                                 \
		free(text_);                                                                       \
	} while (0)

/* JSON for reading: single quotes stand for double ones. */
static json_t *parse_quoted(const char *text)
{
	char *copy = strdup(text);
	json_error_t error;
	json_t *document;

	cr_assert_not_null(copy);
	for (char *quote = strchr(copy, '\''); quote; quote = strchr(quote, '\''))
		*quote = '"';
	document = json_loads(copy, JSON_REJECT_DUPLICATES, &error);
	cr_assert_not_null(document, "line %d: %s", error.line, error.text);
	free(copy);
	return document;
}

/* The order of keys is for the eye; everything else must be the same. */
#define EXPECT_JSON(print, subject, expected)                                                      \
	do {                                                                                       \
		char *text_ = OUTPUT_OF(print, subject);                                           \
		json_t *actual_ = json_loads(text_, JSON_REJECT_DUPLICATES, NULL);                 \
		json_t *expected_ = parse_quoted(expected);                                        \
		cr_expect(json_equal(actual_, expected_), #print " printed %s", text_);            \
		json_decref(actual_);                                                              \
		json_decref(expected_);                                                            \
		free(text_);                                                                       \
	} while (0)

static struct holder holders[] = { { .pid = 100 }, { .pid = 101 }, { .pid = 102 } };

static struct listener nginx[] = {
	{ 11, 0, 1, 101, "nginx", STATE_IDLE, 0, 0, 511, IPPROTO_TCP, true, holders, 3 },
	{ 12, 0, 2, 102, "nginx", STATE_BUSY, 1, 2, 511, IPPROTO_TCP, true, holders, 3 },
};

/* One process with two event loops, and another program beside it. */
static struct listener haproxy[] = {
	{ 21, 0, 3, 7, "haproxy", STATE_IDLE, 0, 0, 128, IPPROTO_TCP, true, holders, 1 },
	{ 22, 0, 4, 7, "haproxy", STATE_IDLE, 0, 0, 128, IPPROTO_TCP, true, holders, 1 },
	{ 23, 0, 3, 7, "haproxy", STATE_IDLE, 0, 0, 128, IPPROTO_TCP, true, holders, 1 },
	{ 24, 0, 0, 8, "a, b", STATE_UNKNOWN, 0, 0, 128, IPPROTO_TCP, true, holders, 1 },
};

static struct listener hostile[] = {
	{ 31, 0, 0, 9, HOSTILE_COMM, STATE_UNATTENDED, 0, 0, 5, IPPROTO_TCP, false, holders, 1 },
};

static struct listener go[] = {
	{ 41, 0, 5, 55, "go", STATE_IDLE, 0, 0, 4096, IPPROTO_MPTCP, true, holders, 1 },
};

static struct listener shared[] = {
	{ 51, 0, 0, 0, "", STATE_UNKNOWN, 0, 0, 64, IPPROTO_TCP, true, holders, 3 },
};

static struct group groups[] = {
	{
		.address = { 127, 0, 0, 1 },
		.family = AF_INET,
		.port = 80,
		.netns = 4026531840,
		.prog_id = 3,
		.prog_type = 21,
		.prog_name = "steer",
		.ours = true,
		.listeners = nginx,
		.nr_listeners = COUNT(nginx),
	},
	{
		.family = AF_INET6,
		.port = 443,
		.netns = 4026531840,
		.prog_id = 12,
		.prog_type = 21,
		.prog_name = "\x1bxyz",
		.listeners = haproxy,
		.nr_listeners = COUNT(haproxy),
	},
	{
		.address = { 10, 1, 2, 3 },
		.family = AF_INET,
		.port = 8080,
		.netns = 5,
		.ifindex = 7,
		.reason = REASON_NO_REUSEPORT,
		.listeners = hostile,
		.nr_listeners = COUNT(hostile),
	},
	{
		.family = AF_INET,
		.port = 9000,
		.netns = 5,
		.prog_type = 1,
		.reason = REASON_MPTCP,
		.listeners = go,
		.nr_listeners = COUNT(go),
	},
	{
		.address = { [15] = 1 },
		.family = AF_INET6,
		.port = 9001,
		.netns = 5,
		.prog_id = 13,
		.prog_type = 21,
		.reason = REASON_ONE_LISTENER,
		.listeners = shared,
		.nr_listeners = COUNT(shared),
	},
};

static const struct inventory inventory = { groups, COUNT(groups) };
static const struct inventory no_inventory = {};

Test(show_list, the_table_has_one_row_for_each_group)
{
	EXPECT_OUTPUT(
		list_print_table, &inventory,
		"ADDRESS              NETNS LISTENERS WORKERS                 STEERED                 NOTE\n"
		"127.0.0.1:80    4026531840         2 nginx:101,102           socksteer\n"
		"[::]:443        4026531840         4 haproxy:7(2) a, b:8     program \"\\x1bxyz\" id 12\n"
		"10.1.2.3:8080%7          5         1 \\x1b[31m\\x0a\"\\x5c\\xff:9 no                      not a reuseport listener\n"
		"0.0.0.0:9000             5         1 go:55                   classic BPF             MPTCP listener: the kernel cannot steer those\n"
		"[::1]:9001               5         1 ?                       program id 13           one listener, 3 processes: nothing to steer\n");
}

Test(show_list, the_table_of_nothing_says_so)
{
	EXPECT_OUTPUT(list_print_table, &no_inventory, "No process listens on TCP.\n");
}

static const char list_json[] =
	"{'groups': ["
	"{'address': '127.0.0.1', 'port': 80, 'interface': null, 'family': 'inet', 'netns': 4026531840,"
	" 'listeners': ["
	"  {'cookie': 11, 'pid': 101, 'comm': 'nginx', 'worker': 0,"
	" 'state': 'idle', 'half_open': 0, 'queued': 0, 'backlog': 511},"
	"  {'cookie': 12, 'pid': 102, 'comm': 'nginx', 'worker': 1,"
	" 'state': 'busy', 'half_open': 1, 'queued': 2, 'backlog': 511}],"
	" 'workers': 2, 'steered_by': 'socksteer', 'steerable': true, 'reason': null},"
	"{'address': '::', 'port': 443, 'interface': null, 'family': 'inet6', 'netns': 4026531840,"
	" 'listeners': ["
	"  {'cookie': 21, 'pid': 7, 'comm': 'haproxy', 'worker': 0,"
	" 'state': 'idle', 'half_open': 0, 'queued': 0, 'backlog': 128},"
	"  {'cookie': 22, 'pid': 7, 'comm': 'haproxy', 'worker': 1,"
	" 'state': 'idle', 'half_open': 0, 'queued': 0, 'backlog': 128},"
	"  {'cookie': 23, 'pid': 7, 'comm': 'haproxy', 'worker': 0,"
	" 'state': 'idle', 'half_open': 0, 'queued': 0, 'backlog': 128},"
	"  {'cookie': 24, 'pid': 8, 'comm': 'a, b', 'worker': 2,"
	" 'state': 'unknown', 'half_open': 0, 'queued': 0, 'backlog': 128}],"
	" 'workers': 3, 'steered_by': 'program \\\"\\\\x1bxyz\\\" id 12', 'steerable': true, 'reason': null},"
	"{'address': '10.1.2.3', 'port': 8080, 'interface': '7', 'family': 'inet', 'netns': 5,"
	" 'listeners': ["
	"  {'cookie': 31, 'pid': 9, 'comm': '\\\\x1b[31m\\\\x0a\\\"\\\\x5c\\\\xff', 'worker': 0,"
	" 'state': 'unattended', 'half_open': 0, 'queued': 0, 'backlog': 5}],"
	" 'workers': 1, 'steered_by': null, 'steerable': false, 'reason': 'not a reuseport listener'},"
	"{'address': '0.0.0.0', 'port': 9000, 'interface': null, 'family': 'inet', 'netns': 5,"
	" 'listeners': ["
	"  {'cookie': 41, 'pid': 55, 'comm': 'go', 'worker': 0,"
	" 'state': 'idle', 'half_open': 0, 'queued': 0, 'backlog': 4096}],"
	" 'workers': 1, 'steered_by': 'classic BPF', 'steerable': false, 'reason': 'MPTCP listener: the kernel cannot steer those'},"
	"{'address': '::1', 'port': 9001, 'interface': null, 'family': 'inet6', 'netns': 5,"
	" 'listeners': ["
	"  {'cookie': 51, 'pid': 0, 'comm': '', 'worker': 0,"
	" 'state': 'unknown', 'half_open': 0, 'queued': 0, 'backlog': 64}],"
	" 'workers': 1, 'steered_by': 'program id 13', 'steerable': false, 'reason': 'one listener, 3 processes: nothing to steer'}]}";

Test(show_list, the_json_has_every_group_and_listener)
{
	EXPECT_JSON(list_print_json, &inventory, list_json);
}

Test(show_list, the_json_of_nothing_is_an_empty_list)
{
	EXPECT_OUTPUT(list_print_json, &no_inventory, "{\n  \"groups\": []\n}\n");
}

Test(show_list, many_workers_are_counted_and_the_first_six_named)
{
	struct listener workers[20] = {};
	struct group group = { .family = AF_INET, .port = 80, .netns = 5, .listeners = workers };
	const struct inventory one = { &group, 1 };

	for (size_t i = 0; i < COUNT(workers); i++)
		workers[i] = (struct listener){ .cookie = i + 1, .pid = 101 + i, .comm = "nginx" };
	group.nr_listeners = 6;
	EXPECT_OUTPUT(list_print_table, &one,
		      "ADDRESS    NETNS LISTENERS WORKERS                       STEERED NOTE\n"
		      "0.0.0.0:80     5         6 nginx:101,102,103,104,105,106 no\n");
	group.nr_listeners = COUNT(workers);
	EXPECT_OUTPUT(list_print_table, &one,
		      "ADDRESS    NETNS LISTENERS WORKERS                           STEERED NOTE\n"
		      "0.0.0.0:80     5        20 nginx:101,102,103,104,105,106 +14 no\n");
}

Test(show_list, a_device_of_our_own_network_namespace_has_a_name)
{
	struct group group = groups[0];
	const struct inventory one = { &group, 1 };
	struct stat own;
	char *text;

	cr_assert_eq(stat("/proc/self/ns/net", &own), 0);
	group.netns = (uint32_t)own.st_ino;
	group.ifindex = 1; /* Linux gives the first index to the loopback device. */
	text = OUTPUT_OF(list_print_table, &one);
	cr_expect_not_null(strstr(text, "127.0.0.1:80%lo "), "%s", text);
	free(text);
}

/* What print wrote to a terminal of that many columns. Standard output becomes the terminal. */
static void print_on_terminal(unsigned short nr_columns, char *ret_text, size_t size)
{
	struct winsize window = { .ws_row = 24, .ws_col = nr_columns };
	int master, slave;
	struct pollfd more;
	size_t used = 0;
	ssize_t length;

	cr_assert_eq(openpty(&master, &slave, NULL, NULL, &window), 0);
	cr_assert_geq(dup2(slave, STDOUT_FILENO), 0);
	cr_assert_eq(list_print_table(&inventory, stdout), 0);
	cr_assert_eq(fflush(stdout), 0);
	more = (struct pollfd){ .fd = master, .events = POLLIN };
	/* A terminal hands on what was written by and by; after so long that was all. */
	while (poll(&more, 1, 500) > 0) {
		length = read(master, ret_text + used, size - 1 - used);
		cr_assert_gt(length, 0);
		used += (size_t)length;
	}
	ret_text[used] = '\0';
	close(master);
	close(slave);
}

Test(show_list, the_table_wraps_to_the_width_of_the_terminal)
{
	char text[4096], *rest = text, *line;
	size_t nr_lines = 0;

	unsetenv("COLUMNS");
	print_on_terminal(80, text, sizeof(text));
	while ((line = strsep(&rest, "\r\n"))) {
		nr_lines += line[0] != '\0';
		cr_expect_leq(strlen(line), 80, "%s", line);
	}
	cr_expect_gt(nr_lines, COUNT(groups) + 1);
}

static struct status_listener status_nginx[] = {
	{
		.slot = 0,
		.slow_start_percent = 100,
		.cookie = 11,
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
		.slow_start_percent = 40,
		.cookie = 12,
		.pid = 102,
		.comm = HOSTILE_COMM,
		.state = STATE_BUSY,
		.state_ms = 2500,
		.head_ms = 70,
		.nr_stuck = 2,
		.nr_rescues = 1,
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

static struct status_listener status_new[] = {
	{ .cookie = 21,
	  .pid = 7,
	  .comm = "sixteen-letters!",
	  .weight = 1,
	  .slow_start_percent = 40,
	  .backlog = 128 },
};

static struct status_group status_groups[] = {
	{
		.name = "127.0.0.1:80",
		.address = { 127, 0, 0, 1 },
		.family = AF_INET,
		.port = 80,
		.netns = 4026531840,
		.steered = true,
		.policy = POLICY_LEAST_LOADED,
		.settings = { .slow_start_ns = 30000000000,
			      .busy_penalty = 128,
			      .stuck_after_ns = 100000000,
			      .rescue = RESCUE_STUCK },
		.outcomes = { [OUTCOME_SELECTED] = 3, [OUTCOME_EMPTY_SLOT] = 1 },
		.listeners = status_nginx,
		.nr_listeners = COUNT(status_nginx),
	},
	{
		.name = "[::1]:443",
		.address = { [15] = 1 },
		.family = AF_INET6,
		.port = 443,
		.netns = 5,
		.policy = POLICY_HASH,
		.settings = { .policy = POLICY_HASH },
		.listeners = status_new,
		.nr_listeners = COUNT(status_new),
	},
	{
		.name = "0.0.0.0:81",
		.family = AF_INET,
		.port = 81,
		.netns = 5,
		.steered = true,
		.policy = POLICY_P2C,
		.settings = { .policy = POLICY_P2C },
	},
};

static const struct status status = { .groups = status_groups, .nr_groups = COUNT(status_groups) };
static const struct status no_status = {};

Test(show_status, the_table_of_each_group_stands_between_its_heading_and_its_outcomes)
{
	EXPECT_OUTPUT(
		status_print_table, &status,
		"127.0.0.1:80 (netns 4026531840): policy least-loaded, 2 listeners, steered\n"
		"SLOT PID COMMAND               STATE    WEIGHT HELD WORKER HALF-OPEN QUEUED STEERED SHARE\n"
		"   0 101 nginx                 idle          1   10     14         0  0/511       1 33.3%\n"
		"   3 102 \\x1b[31m\\x0a\"\\x5c\\xff draining      2   11     11         1  2/511       2 66.7%\n"
		"outcomes: selected 3, empty_slot 1\n"
		"\n"
		"[::1]:443 (netns 5): policy hash, 1 listener, not steered: our program is no longer attached\n"
		"SLOT PID COMMAND          STATE                   HELD WORKER HALF-OPEN QUEUED STEERED SHARE\n"
		"   0   7 sixteen-letters! unknown, slow start 40%    0      0         0  0/128       0     -\n"
		"outcomes: none yet\n"
		"\n"
		"0.0.0.0:81 (netns 5): policy p2c, 0 listeners, steered\n"
		"outcomes: none yet\n");
}

Test(show_status, the_table_of_nothing_says_so)
{
	EXPECT_OUTPUT(status_print_table, &no_status,
		      "No group is steered. \"socksteer list\" shows which could be.\n");
}

static const char status_json[] =
	"{'groups': ["
	"{'name': '127.0.0.1:80', 'address': '127.0.0.1', 'port': 80, 'family': 'inet', 'netns': 4026531840,"
	" 'steered': true, 'policy': 'least-loaded',"
	" 'settings': {'policy': 'least-loaded', 'slow-start': '30s', 'busy-penalty': '0.50', 'stuck-after': '100ms', 'rescue': 'stuck'},"
	" 'missing': 0, 'listeners': ["
	"  {'slot': 0, 'cookie': 11, 'pid': 101, 'comm': 'nginx', 'state': 'idle', 'state_ms': 0, 'head_ms': 0, 'nr_stuck': 0, 'nr_rescues': 0, 'draining': false,"
	" 'weight': 1, 'slow_start_percent': 100, 'held': 10, 'worker_held': 14, 'half_open': 0, 'queued': 0,"
	" 'backlog': 511, 'opened': 30, 'closed': 20, 'steered': 1, 'migrated': 4},"
	"  {'slot': 3, 'cookie': 12, 'pid': 102, 'comm': '\\\\x1b[31m\\\\x0a\\\"\\\\x5c\\\\xff', 'state': 'busy', 'state_ms': 2500, 'head_ms': 70, 'nr_stuck': 2, 'nr_rescues': 1, 'draining': true,"
	" 'weight': 2, 'slow_start_percent': 40, 'held': 11, 'worker_held': 11, 'half_open': 1, 'queued': 2,"
	" 'backlog': 511, 'opened': 12345678901, 'closed': 1, 'steered': 2, 'migrated': 0}],"
	" 'outcomes': {'selected': 3, 'migrated': 0, 'hash': 0, 'no_listener': 0, 'incomplete': 0, 'empty_slot': 1,"
	"  'other_group': 0, 'refused': 0, 'not_tcp': 0, 'no_settings': 0}},"
	"{'name': '[::1]:443', 'address': '::1', 'port': 443, 'family': 'inet6', 'netns': 5,"
	" 'steered': false, 'policy': 'hash',"
	" 'settings': {'policy': 'hash', 'slow-start': '0', 'busy-penalty': '0.00', 'stuck-after': '0', 'rescue': 'off'},"
	" 'missing': 0, 'listeners': ["
	"  {'slot': 0, 'cookie': 21, 'pid': 7, 'comm': 'sixteen-letters!', 'state': 'unknown', 'state_ms': 0, 'head_ms': 0, 'nr_stuck': 0, 'nr_rescues': 0, 'draining': false,"
	" 'weight': 1, 'slow_start_percent': 40, 'held': 0, 'worker_held': 0, 'half_open': 0, 'queued': 0,"
	" 'backlog': 128, 'opened': 0, 'closed': 0, 'steered': 0, 'migrated': 0}],"
	" 'outcomes': {'selected': 0, 'migrated': 0, 'hash': 0, 'no_listener': 0, 'incomplete': 0, 'empty_slot': 0,"
	"  'other_group': 0, 'refused': 0, 'not_tcp': 0, 'no_settings': 0}},"
	"{'name': '0.0.0.0:81', 'address': '0.0.0.0', 'port': 81, 'family': 'inet', 'netns': 5,"
	" 'steered': true, 'policy': 'p2c',"
	" 'settings': {'policy': 'p2c', 'slow-start': '0', 'busy-penalty': '0.00', 'stuck-after': '0', 'rescue': 'off'},"
	" 'missing': 0, 'listeners': ["
	"  ],"
	" 'outcomes': {'selected': 0, 'migrated': 0, 'hash': 0, 'no_listener': 0, 'incomplete': 0, 'empty_slot': 0,"
	"  'other_group': 0, 'refused': 0, 'not_tcp': 0, 'no_settings': 0}}]}";

Test(show_status, the_json_has_every_counter_as_a_number)
{
	EXPECT_JSON(status_print_json, &status, status_json);
}

Test(show_status, the_json_of_nothing_is_an_empty_list)
{
	EXPECT_OUTPUT(status_print_json, &no_status, "{\n  \"groups\": []\n}\n");
}

/* A file of which every write fails, and at once. */
static FILE *open_full(void)
{
	FILE *full = fopen("/dev/full", "we");

	cr_assert_not_null(full);
	setvbuf(full, NULL, _IONBF, 0);
	return full;
}

Test(show, an_output_that_cannot_be_written_is_an_error)
{
	FILE *full = open_full();

	cr_expect_eq(list_print_table(&inventory, full), -EIO);
	cr_expect_eq(list_print_table(&no_inventory, full), -EIO);
	cr_expect_eq(list_print_json(&inventory, full), -EIO);
	cr_expect_eq(status_print_table(&status, full), -EIO);
	cr_expect_eq(status_print_table(&no_status, full), -EIO);
	cr_expect_eq(status_print_json(&status, full), -EIO);
	fclose(full);
}
