/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups of "all" that end and do not come back: what is left of them, and for how long.
 *
 * The daemon's own code runs in a child of the test, because no command line shortens the time.
 */
#include "base/cleanup.h"
#include "daemon/daemon.h"
#include "kernel/pins.h"
#include "kernel/tables.h"
#include "steering/roster.h"
#include "support/daemon.h"
#include "support/program.h"
#include "support/sandbox.h"
#include "support/scene.h"
#include "support/steered.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

TestSuite(absence, .init = scene_enter, .timeout = TEST_SECONDS);

/* The daemon looks twice a second, so the pins end soon after. */
#define ABSENCE_NS 700000000

/* An address of this test alone, among all tests that run beside it; all of them is a network. */
#define OWN_NETWORK "127.255.%u."

static void start_here(struct scene *scene, const char *last, const char *port)
{
	char address[32];

	snprintf(address, sizeof(address), OWN_NETWORK "%s", (unsigned int)getpid() % 256, last);
	scene_start(scene, "--workers", "2", "--address", address, "--port", port);
}

/* In the child, instead of the program. */
static int run_here(void *argument)
{
	struct failure failure = {};
	int err = daemon_run(argument, &failure);

	if (err)
		fprintf(stderr, "%s\n", failure.message);
	fflush(stderr);
	_exit(err ? EXIT_FAILED : EXIT_DONE);
}

static size_t nr_pinned_groups(void)
{
	char **folders = NULL;
	size_t nr_folders = 0;

	cr_assert_eq(pins_list(&folders, &nr_folders), 0);
	pins_list_free(folders, nr_folders);
	return nr_folders;
}

static bool has_one_pinned_group(void *argument)
{
	(void)argument;
	return nr_pinned_groups() == 1;
}

static void expect_no_rows(void)
{
	struct tables tables __attribute__((cleanup(tables_done))) = TABLES_NONE;
	struct roster *roster CLEANUP(cleanup_free) = NULL;
	struct failure failure = {};
	size_t i;

	cr_assert_eq(tables_open(&tables, &failure), 0, "%s", failure.message);
	cr_assert_eq(roster_read(&tables, &roster), 0);
	for (i = 0; i < MAX_WORKERS; i++)
		cr_expect_eq(roster->workers[i].pid, 0, "worker %zu", i);
	for (i = 0; i < MAX_LISTENERS; i++)
		cr_expect_eq(roster->listeners[i].cookie, 0, "listener %zu", i);
}

Test(absence, the_pins_of_a_group_of_all_end_with_it_and_those_of_a_named_one_wait)
{
	struct said said CLEANUP(said_done) = {};
	struct daemon_options options = { .all = true, .longest_absence_ns = ABSENCE_NS };
	const struct program_setup setup = { run_here, &options };
	char text[ENDPOINT_TEXT_BYTES], pattern[64];
	struct scene named, other, again;
	struct failure failure = {};
	struct group_spec spec;
	struct program daemon;

	start_here(&named, "1", "0");
	start_here(&other, "2", "0");
	spec_of_endpoint(&named.servers.endpoint, text, &spec);
	options.specs = &spec;
	options.nr_specs = 1;
	snprintf(pattern, sizeof(pattern), "address=" OWN_NETWORK "*",
		 (unsigned int)getpid() % 256);
	cr_assert_eq(patterns_parse(&options.patterns, pattern, &failure), 0);
	program_start(&daemon, &setup, (const char *const[]){ NULL });
	await_steered(&named.servers.endpoint);
	await_steered(&other.servers.endpoint);
	servers_stop(&named.servers);
	servers_stop(&other.servers);
	cr_expect(wait_until(has_one_pinned_group, NULL, DEADLINE_MS), "%zu groups are pinned",
		  nr_pinned_groups());
	expect_no_rows();
	start_here(&again, "2", other.port + 1);
	await_steered_listeners(&again, 2);
	cr_expect_eq(nr_pinned_groups(), 2);
	start_here(&named, "1", named.port + 1);
	await_steered_listeners(&named, 2);
	daemon_stop(&daemon, &said);
	cr_expect(strstr(said.error, "its pins are removed") != NULL, "%s", said.error);
	cr_expect(strstr(said.error, "came back and is steered again") != NULL, "%s", said.error);
	cr_expect_null(strstr(said.error, "by hand"), "%s", said.error);
}
