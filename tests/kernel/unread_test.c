/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Output into a pipe whose reader has gone, as in "socksteer status --watch | head -1": the program ends
 * without a word, and with the code that a shell gives to what SIGPIPE has ended.
 */
#include "base/cleanup.h"
#include "support/program.h"
#include "support/sandbox.h"
#include "support/scene.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

TestSuite(unread, .init = scene_enter, .timeout = TEST_SECONDS);

struct ends {
	int reader, writer; /* owned */
};

static void ends_open(struct ends *ret_ends)
{
	int fds[2];

	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	*ret_ends = (struct ends){ fds[0], fds[1] };
}

/* In the child. */
static int write_to_pipe(void *argument)
{
	const struct ends *ends = argument;

	return dup2(ends->writer, STDOUT_FILENO) < 0 ? -errno : 0;
}

static void expect_quiet(const struct said *said, const char *what)
{
	cr_expect_eq(said->code, EXIT_UNREAD, "%s: code %d: %s", what, said->code, said->error);
	cr_expect_str_empty(said->error, "%s: says \"%s\"", what, said->error);
}

Test(unread, each_command_ends_quietly_when_its_reader_has_gone)
{
	struct scene scene;
	struct ends ends;
	size_t i;

	scene_start(&scene, "--workers", "2");
	scene_attach(&scene);
	ends_open(&ends);
	close(ends.reader);
	const struct program_setup setup = { write_to_pipe, &ends };
	const char *const commands[][8] = {
		{ "help" },
		{ "version" },
		{ "list" },
		{ "list", "--json" },
		{ "status" },
		{ "status", "--json" },
		{ "status", "--watch=20ms" },
		{ "status", "--watch=20ms", "--json" },
		{ "top", "--once", "--interval", "20ms" },
		{ "events" },
		{ "events", "--json" },
		{ "metrics" },
		{ "audit" },
		{ "audit", "--json" },
		{ "set", scene.group, "--netns", scene.netns },
		{ "set", scene.group, "--netns", scene.netns, "--json" },
		{ "policy", scene.group, "p2c", "--netns", scene.netns },
		{ "drain", scene.group, "0", "--netns", scene.netns },
		{ "drain", scene.group, "0", "--netns", scene.netns, "--wait" },
		{ "resume", scene.group, "0", "--netns", scene.netns },
		{ "weight", scene.group, "0", "2", "--netns", scene.netns },
		{ "attach", scene.group, "--netns", scene.netns },
		{ "run", "--check", scene.group },
		{ "detach", scene.group, "--netns", scene.netns },
		{ "detach", "--all" },
	};

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct said said CLEANUP(said_done) = {};

		program_run_list(&said, &setup, commands[i]);
		expect_quiet(&said, commands[i][0]);
	}
	close(ends.writer);
	/* Quiet, and done. */
	expect_untouched(&scene.servers.endpoint, "detach");
}

static void expect_quiet_after_a_frame(const char *const *arguments)
{
	struct said said CLEANUP(said_done) = {};
	struct program program;
	struct ends ends;
	char byte;

	ends_open(&ends);
	program_start(&program, &(struct program_setup){ write_to_pipe, &ends }, arguments);
	close(ends.writer);
	cr_assert_eq(read(ends.reader, &byte, 1), 1);
	close(ends.reader);
	program_wait(&program, &said);
	expect_quiet(&said, arguments[0]);
}

Test(unread, a_view_ends_quietly_when_its_reader_goes_after_the_first_frame)
{
	struct scene scene;

	scene_start(&scene, "--workers", "2");
	scene_attach(&scene);
	expect_quiet_after_a_frame((const char *const[]){ "status", "--watch=20ms", NULL });
	expect_quiet_after_a_frame(
		(const char *const[]){ "status", "--watch=20ms", "--json", NULL });
}
