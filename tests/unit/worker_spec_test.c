/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/worker_spec.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* No listener at all, where an index is expected. */
#define NOBODY 99

struct parse_case {
	const char *text;
	int err;
	bool slot, pid;
	uint32_t number;
	const char *command;
};

static const struct parse_case parse_cases[] = {
	{ "0", 0, true, true, 0, NULL },
	{ "4211", 0, true, true, 4211, NULL },
	{ "slot:3", 0, true, false, 3, NULL },
	{ "pid:4211", 0, false, true, 4211, NULL },
	{ "nginx:4211", 0, false, true, 4211, "nginx" },
	{ "a:b c:7", 0, false, true, 7, "a:b c" },
	{ "slots:7", 0, false, true, 7, "slots" },
	{ "", -EINVAL, false, false, 0, NULL },
	{ ":7", -EINVAL, false, false, 0, NULL },
	{ "nginx", -EINVAL, false, false, 0, NULL },
	{ "nginx:", -EINVAL, false, false, 0, NULL },
	{ "slot:", -EINVAL, false, false, 0, NULL },
	{ "slot:-1", -EINVAL, false, false, 0, NULL },
	{ "pid:7x", -EINVAL, false, false, 0, NULL },
	{ " 7", -EINVAL, false, false, 0, NULL },
	{ "4294967296", -EINVAL, false, false, 0, NULL },
};

Test(worker_spec, a_worker_is_a_slot_a_pid_or_a_command_with_its_pid)
{
	for (size_t i = 0; i < COUNT(parse_cases); i++) {
		const struct parse_case *row = &parse_cases[i];
		struct worker_spec spec = {};

		cr_expect_eq(worker_spec_parse(row->text, &spec), row->err, "\"%s\"", row->text);
		cr_expect_eq(spec.may_be_slot, row->slot, "\"%s\"", row->text);
		cr_expect_eq(spec.may_be_pid, row->pid, "\"%s\"", row->text);
		cr_expect_eq(spec.number, row->number, "\"%s\"", row->text);
		cr_expect_eq(spec.command != NULL, row->command != NULL, "\"%s\"", row->text);
		if (row->command && spec.command)
			cr_expect_eq(strncmp(spec.command, row->command, spec.command_length), 0,
				     "\"%s\"", row->text);
	}
}

/*
 * A process with two workers (7), one worker with two slots (9), names that hide, a worker whose
 * process has the number of another's slot (5), and one whose listener has closed (12).
 */
static struct status_listener listeners[] = {
	{ .slot = 0, .worker = 10, .pid = 7, .comm = "haproxy" },
	{ .slot = 1, .worker = 11, .pid = 7, .comm = "haproxy" },
	{ .slot = 3, .worker = 12, .pid = 9, .comm = "node" },
	{ .slot = 4, .worker = 12, .pid = 9, .comm = "node" },
	{ .slot = 5, .worker = 13, .pid = 100, .comm = "\x1b[2J" },
	{ .slot = 6, .worker = 14, .pid = 5, .comm = "a:b" },
	{ .slot = 8, .worker = 15, .pid = 8, .comm = "same" },
	{ .slot = 12, .worker = 16, .pid = 12, .comm = "gone", .gone = true },
	{ .slot = 13, .worker = 17, .pid = 0, .comm = "" },
};

static const struct status_group group = {
	.name = "127.0.0.1:80",
	.listeners = listeners,
	.nr_listeners = COUNT(listeners),
};

struct find_case {
	const char *text;
	enum exit_code code;
	size_t index; /* into listeners */
	const char *words; /* of the failure */
};

static const struct find_case find_cases[] = {
	{ "0", EXIT_DONE, 0, NULL },
	{ "slot:1", EXIT_DONE, 1, NULL },
	{ "4", EXIT_DONE, 3, NULL },
	{ "100", EXIT_DONE, 4, NULL },
	{ "pid:5", EXIT_DONE, 5, NULL },
	{ "slot:5", EXIT_DONE, 4, NULL },
	{ "a:b:5", EXIT_DONE, 5, NULL },
	{ "node:9", EXIT_DONE, 2, NULL },
	{ "\\x1b[2J:100", EXIT_DONE, 4, NULL },
	{ "\x1b[2J:100", EXIT_DONE, 4, NULL },
	/* The slot is that of the process. */
	{ "8", EXIT_DONE, 6, NULL },
	{ "13", EXIT_DONE, 8, NULL },
	{ "5", EXIT_USAGE, NOBODY,
	  "127.0.0.1:80: 5 is the slot of \\x1b[2J:100 and the process of another worker; write "
	  "slot:5 or pid:5" },
	{ "7", EXIT_USAGE, NOBODY,
	  "127.0.0.1:80: process 7 is several workers; name one by its slot:\n"
	  "  slot:0  haproxy:7\n"
	  "  slot:1  haproxy:7" },
	{ "haproxy:7", EXIT_USAGE, NOBODY,
	  "127.0.0.1:80: process 7 is several workers; name one by its slot:\n"
	  "  slot:0  haproxy:7\n"
	  "  slot:1  haproxy:7" },
	{ "\x1b:1", EXIT_NOTHING, NOBODY,
	  "127.0.0.1:80 has no worker \"\\x1b:1\"; it has:\n"
	  "  slot:0  haproxy:7\n"
	  "  slot:1  haproxy:7\n"
	  "  slot:3  node:9\n"
	  "  slot:4  node:9\n"
	  "  slot:5  \\x1b[2J:100\n"
	  "  slot:6  a:b:5\n"
	  "  slot:8  same:8\n"
	  "  slot:13  :0" },
	{ "12", EXIT_NOTHING, NOBODY, NULL },
	{ "slot:2", EXIT_NOTHING, NOBODY, NULL },
	{ "slot:100", EXIT_NOTHING, NOBODY, NULL },
	{ "pid:4", EXIT_NOTHING, NOBODY, NULL },
	{ "pid:0", EXIT_NOTHING, NOBODY, NULL },
	{ "nginx:9", EXIT_NOTHING, NOBODY, NULL },
	{ "nod:9", EXIT_NOTHING, NOBODY, NULL },
};

Test(worker_spec, exactly_one_worker_is_found_or_the_choice_is_named)
{
	for (size_t i = 0; i < COUNT(find_cases); i++) {
		const struct find_case *row = &find_cases[i];
		const struct status_listener *found = NULL;
		struct failure failure = {};
		struct worker_spec spec;

		cr_assert_eq(worker_spec_parse(row->text, &spec), 0, "\"%s\"", row->text);
		worker_spec_find(&spec, &group, &found, &failure);
		cr_expect_eq(failure.code, row->code, "\"%s\": %d %s", row->text, failure.code,
			     failure.message);
		cr_expect_eq(found ? (size_t)(found - listeners) : NOBODY, row->index, "\"%s\"",
			     row->text);
		if (row->words)
			cr_expect_str_eq(failure.message, row->words);
	}
}

Test(worker_spec, a_worker_is_called_by_its_command_pid_and_slots)
{
	char text[WORKER_TEXT_SIZE];

	worker_text(&group, &listeners[1], text);
	cr_expect_str_eq(text, "haproxy:7 (slot 1)");
	worker_text(&group, &listeners[3], text);
	cr_expect_str_eq(text, "node:9 (slots 3, 4)");
	worker_text(&group, &listeners[4], text);
	cr_expect_str_eq(text, "\\x1b[2J:100 (slot 5)");
}

Test(worker_spec, a_hostile_name_and_a_thousand_slots_fit)
{
	static struct status_listener many[MAX_SLOTS];
	const struct status_group large = { .listeners = many, .nr_listeners = MAX_SLOTS };
	char text[WORKER_TEXT_SIZE];

	for (size_t i = 0; i < MAX_SLOTS; i++) {
		many[i].slot = 1023 - (uint32_t)i;
		many[i].pid = 4194304;
		memset(many[i].comm, '\x1b', COMM_SIZE);
	}
	worker_text(&large, &many[0], text);
	cr_expect_str_eq(text + 64, ":4194304 (slots 1023, 1022, 1021, 1020 and 1020 more)");
}
