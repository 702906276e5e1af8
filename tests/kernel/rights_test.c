/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rights that are missing: the program says which, and changes nothing. And members that cannot be
 * copied: nobody is steered then, since a member without a slot would starve.
 */
#include "base/cleanup.h"
#include "support/plain_group.h"
#include "support/program.h"
#include "support/rights.h"
#include "support/sandbox.h"
#include "support/scene.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

TestSuite(rights, .init = scene_enter, .timeout = TEST_SECONDS);

static const struct {
	struct rights rights;
	const char *missing; /* what the program has to name */
	bool may_look; /* the right that is missing is only for changes */
} too_few[] = {
	{ { "root with only CAP_BPF", 0, { CAP_BPF } }, "CAP_PERFMON is missing", false },
	{ { "root without CAP_BPF", 0, { CAP_PERFMON, CAP_SYS_PTRACE } },
	  "CAP_BPF is missing",
	  false },
	{ { "root without CAP_PERFMON", 0, { CAP_BPF, CAP_SYS_PTRACE } },
	  "CAP_PERFMON is missing",
	  false },
	{ { "root without CAP_SYS_PTRACE", 0, { CAP_BPF, CAP_PERFMON } },
	  "CAP_SYS_PTRACE is missing",
	  true },
	{ { "root without capabilities", 0, {} }, "CAP_BPF is missing", false },
	{ { "nobody without CAP_BPF", NOBODY, { CAP_PERFMON, CAP_SYS_PTRACE } },
	  "CAP_BPF is missing",
	  false },
	{ { "nobody without CAP_PERFMON", NOBODY, { CAP_BPF, CAP_SYS_PTRACE } },
	  "CAP_PERFMON is missing",
	  false },
	{ { "nobody without CAP_SYS_PTRACE", NOBODY, { CAP_BPF, CAP_PERFMON } },
	  "CAP_SYS_PTRACE is missing",
	  true },
	{ { "nobody without capabilities", NOBODY, {} }, "CAP_BPF is missing", false },
};

/* Runs a command with each of these sets of rights: one that changes something, or only looks. */
#define expect_change_refused(...)                                                                 \
	expect_rights_named(false, (const char *const[]){ __VA_ARGS__, NULL })
#define expect_look_refused(...)                                                                   \
	expect_rights_named(true, (const char *const[]){ __VA_ARGS__, NULL })
static void expect_rights_named(bool is_look, const char *const *arguments)
{
	size_t i;

	for (i = 0; i < sizeof(too_few) / sizeof(too_few[0]); i++) {
		struct rights rights = too_few[i].rights;
		struct program_setup setup = { rights_keep, &rights };
		struct said said CLEANUP(said_done) = {};
		char what[64];

		snprintf(what, sizeof(what), "%s with %s", arguments[0], rights.name);
		/* What root has pinned is nobody's business. */
		if (is_look && rights.uid && too_few[i].may_look)
			continue;
		program_run_list(&said, &setup, arguments);
		if (is_look && too_few[i].may_look)
			expect_done(&said, what, "");
		else
			expect_refused(&said, what, EXIT_MISSING, too_few[i].missing);
	}
}

Test(rights, an_attach_names_the_right_that_is_missing_and_changes_nothing)
{
	struct scene scene;

	scene_start(&scene, "--workers", "2");
	expect_change_refused("attach", scene.group, "--netns", scene.netns);
	expect_untouched(&scene.servers.endpoint, "attach");
}

Test(rights, run_names_the_right_that_is_missing_and_changes_nothing)
{
	struct scene scene;

	scene_start(&scene, "--workers", "2");
	expect_change_refused("run", scene.group, "--netns", scene.netns);
	expect_untouched(&scene.servers.endpoint, "run");
}

Test(rights, list_names_the_right_that_is_missing)
{
	expect_look_refused("list");
	expect_look_refused("list", "--json");
}

Test(rights, commands_on_a_steered_group_name_the_right_that_is_missing_and_change_nothing)
{
	struct footprint before, after;
	struct scene scene;

	scene_start(&scene, "--workers", "2");
	scene_attach(&scene);
	footprint_look(&scene.servers.endpoint, &before);
	expect_change_refused("attach", scene.group, "--netns", scene.netns);
	expect_look_refused("status", scene.group, "--netns", scene.netns);
	expect_look_refused("policy", scene.group, "hash", "--netns", scene.netns);
	expect_change_refused("detach", scene.group, "--netns", scene.netns);
	expect_change_refused("detach", "--all");
	footprint_look(&scene.servers.endpoint, &after);
	cr_expect_neq(before.prog_id, 0);
	cr_expect_eq(after.prog_id, before.prog_id);
	program_succeeds("detach", scene.group, "--netns", scene.netns);
	expect_untouched(&scene.servers.endpoint, "detach");
}

/* CAP_SYSLOG is not among them: without it a signal may be missing, which the program says. */
Test(rights, the_three_rights_that_it_asks_for_are_enough)
{
	struct rights rights = { .kept = { CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE } };
	struct program_setup setup = { rights_keep, &rights };
	struct said attach CLEANUP(said_done) = {}, status CLEANUP(said_done) = {};
	struct said list CLEANUP(said_done) = {}, detach CLEANUP(said_done) = {};
	struct scene scene;

	kallsyms_restore();
	scene_start(&scene, "--workers", "2");
	program_run_in(&attach, &setup, "attach", scene.group, "--netns", scene.netns);
	expect_done(&attach, "attach", "steering 2 listeners of 2 workers");
	program_run_in(&list, &setup, "list");
	expect_done(&list, "list", scene.group);
	program_run_in(&status, &setup, "status", scene.group, "--netns", scene.netns);
	expect_done(&status, "status", "2 listeners, steered");
	program_run_in(&detach, &setup, "detach", "--all");
	expect_done(&detach, "detach", "1 group");
	expect_untouched(&scene.servers.endpoint, "detach");
}

/*
 * In the child: from now on the kernel refuses copies of one descriptor, as the rules of a
 * container may do.
 */
static int refuse_copies(void *argument)
{
	const unsigned int *fd = argument;
	struct sock_filter instructions[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_getfd, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, *fd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = {
		.len = sizeof(instructions) / sizeof(instructions[0]),
		.filter = instructions,
	};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL) ||
	    prctl(PR_SET_SECCOMP, (unsigned long)SECCOMP_MODE_FILTER, &filter, 0UL, 0UL))
		return -errno;
	return 0;
}

/* All listeners are this process's, so that each has a number of its own. */
Test(rights, one_member_that_cannot_be_copied_leaves_the_whole_group_on_the_hash)
{
	char text[ENDPOINT_TEXT_BYTES], netns[NUMBER_BYTES];
	struct plain_group group;
	size_t i;

	plain_group_init(&group, "127.0.0.1", "0");
	plain_group_add_watched(&group, 3, PLAIN_BACKLOG);
	endpoint_format(&group.endpoint, text);
	network_format(netns);
	for (i = 0; i < group.nr; i++) {
		unsigned int fd = (unsigned int)group.listeners[i];
		struct program_setup setup = { refuse_copies, &fd };
		struct said said CLEANUP(said_done) = {};
		char what[32];

		snprintf(what, sizeof(what), "member %zu", i);
		program_run_in(&said, &setup, "attach", text, "--netns", netns);
		expect_refused(&said, what, EXIT_MISSING, "cannot copy the listener of");
		expect_no_footprint(&group.endpoint, what);
	}
	/* None of them is left in a slot: that would make the kernel refuse it now. */
	program_succeeds("attach", text, "--netns", netns);
	program_succeeds("detach", "--all");
	expect_no_footprint(&group.endpoint, "detach");
	plain_group_done(&group);
}
