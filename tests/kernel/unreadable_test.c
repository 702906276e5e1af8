/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pins that are there and cannot be opened, for want of descriptors or of rights: the program says so,
 * and never takes them for pins that are not there.
 */
#include "base/cleanup.h"
#include "support/daemon.h"
#include "support/footprint.h"
#include "support/program.h"
#include "support/rights.h"
#include "support/sandbox.h"
#include "support/scene.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PINS "/sys/fs/bpf/socksteer"
#define RUN "/run/socksteer"

TestSuite(unreadable, .init = scene_enter, .timeout = TEST_SECONDS);

#define NR_GROUPS 3

/* From what no program can begin with, to what is enough for all of it. */
#define FEWEST_FILES 5
#define ENOUGH_FILES 80
#define FILES_STEP 5

/* In the child. */
static int allow_files(void *argument)
{
	const rlim_t *nr = argument;
	const struct rlimit limit = { *nr, *nr };

	return setrlimit(RLIMIT_NOFILE, &limit) ? -errno : 0;
}

/*
 * Runs a command with few descriptors and then with more of them: it fails and says so, or does what it
 * does with enough of them. words are in its output then.
 */
static void expect_all_or_failure(const char *const *arguments, const char *const words[NR_GROUPS])
{
	rlim_t nr;
	size_t i;
	int code = PROGRAM_UNPREPARED;

	for (nr = FEWEST_FILES; nr <= ENOUGH_FILES; nr += FILES_STEP) {
		const struct program_setup setup = { allow_files, &nr };
		struct said said CLEANUP(said_done) = {};

		program_run_list(&said, &setup, arguments);
		code = said.code;
		for (i = 0; i < NR_GROUPS && !said.code; i++)
			cr_expect(strstr(said.output, words[i]),
				  "%s with %lu files: no %s in \"%s\"", arguments[0],
				  (unsigned long)nr, words[i], said.output);
		/* "Not steered" would be a lie. */
		cr_expect_neq(said.code, EXIT_NOTHING, "%s with %lu files: %s", arguments[0],
			      (unsigned long)nr, said.error);
		cr_expect(!said.code || said.error[0], "%s with %lu files says nothing",
			  arguments[0], (unsigned long)nr);
	}
	cr_expect_eq(code, EXIT_DONE, "%s with %d files", arguments[0], ENOUGH_FILES);
}

static void begin(struct scene scenes[NR_GROUPS])
{
	size_t i;

	for (i = 0; i < NR_GROUPS; i++) {
		scene_start(&scenes[i], "--workers", "2");
		scene_attach(&scenes[i]);
	}
}

Test(unreadable, with_few_descriptors_no_view_passes_over_a_group)
{
	static const char *const views[][2] = { { "status" }, { "metrics" }, { "audit" } };
	struct scene scenes[NR_GROUPS];
	size_t i;

	begin(scenes);
	const char *const groups[] = { scenes[0].group, scenes[1].group, scenes[2].group };

	for (i = 0; i < sizeof(views) / sizeof(views[0]); i++)
		expect_all_or_failure(views[i], groups);
}

static const char *const no_words[NR_GROUPS] = { "", "", "" };

Test(unreadable, with_few_descriptors_no_change_takes_a_group_for_not_steered)
{
	struct scene scenes[NR_GROUPS];

	begin(scenes);
	expect_all_or_failure((const char *const[]){ "set", scenes[2].group, "--netns",
						     scenes[2].netns, NULL },
			      no_words);
	expect_all_or_failure((const char *const[]){ "drain", scenes[1].group, "0", "--netns",
						     scenes[1].netns, NULL },
			      no_words);
}

/* What it cannot open it must not take for half done and make anew. */
Test(unreadable, with_few_descriptors_an_attach_leaves_what_is_steered)
{
	struct footprint before, after;
	struct scene scene;

	scene_start(&scene, "--workers", "2");
	scene_attach(&scene);
	footprint_look(&scene.servers.endpoint, &before);
	expect_all_or_failure((const char *const[]){ "attach", scene.group, "--netns", scene.netns,
						     NULL },
			      no_words);
	footprint_look(&scene.servers.endpoint, &after);
	cr_expect_neq(before.prog_id, 0);
	cr_expect_eq(after.prog_id, before.prog_id);
}

/* A group that root has pinned among those of nobody, who may not open its folder. */
struct shared {
	struct scene own, roots;
};

static struct rights documented = { "nobody", NOBODY, { CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE } };
static const struct program_setup as_nobody = { rights_keep, &documented };

static void share(struct shared *shared)
{
	struct said said CLEANUP(said_done) = {};

	mkdir(RUN, 0755);
	cr_assert_eq(mount("tmpfs", RUN, "tmpfs", 0, "mode=755"), 0, "%s", strerror(errno));
	cr_assert_eq(chown(RUN, NOBODY, NOBODY), 0);
	cr_assert_eq(chmod("/sys/fs/bpf", 0755), 0);
	cr_assert_eq(mkdir(PINS, 0700), 0);
	cr_assert_eq(chown(PINS, NOBODY, NOBODY), 0);
	scene_start(&shared->own, "--workers", "2");
	scene_start(&shared->roots, "--workers", "2");
	program_run_in(&said, &as_nobody, "attach", shared->own.group, "--netns",
		       shared->own.netns);
	expect_done(&said, "attach", "steering");
	scene_attach(&shared->roots);
}

Test(unreadable, a_group_of_another_user_is_named_where_it_is_missed)
{
	struct said all CLEANUP(said_done) = {}, own CLEANUP(said_done) = {};
	struct said roots CLEANUP(said_done) = {};
	struct shared shared;

	share(&shared);
	program_run_in(&all, &as_nobody, "status");
	expect_refused(&all, "status", EXIT_MISSING,
		       "Permission denied; run as root, or as the user who has made them");
	program_run_in(&own, &as_nobody, "status", shared.own.group, "--netns", shared.own.netns);
	expect_done(&own, "status GROUP", "2 listeners, steered");
	program_run_in(&roots, &as_nobody, "set", shared.roots.group, "--netns",
		       shared.roots.netns);
	expect_refused(&roots, "set", EXIT_MISSING,
		       "cannot open the pins below /sys/fs/bpf/socksteer/127-0-0-1_");
}

Test(unreadable, a_daemon_says_once_which_group_it_cannot_read_and_keeps_the_others)
{
	struct said said CLEANUP(said_done) = {};
	struct program daemon;
	struct servers joined;
	struct shared shared;
	const char *first;

	share(&shared);
	daemon_start(&daemon, &as_nobody, &shared.own, NULL);
	servers_start(&joined, "--workers", "1", "--port", shared.own.port + 1);
	await_steered_listeners(&shared.own, 3);
	daemon_stop(&daemon, &said);
	first = strstr(said.error, "cannot open the pins below /sys/fs/bpf/socksteer/127-0-0-1_");
	cr_assert_not_null(first, "%s", said.error);
	cr_expect_null(strstr(first + 1, "cannot open the pins below"), "%s", said.error);
}
