/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the daemon may do once it has begun: what it needs, and nothing else, whoever started it.
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
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define PINS "/sys/fs/bpf/socksteer"
#define RUN "/run/socksteer"

/* The daemon's lock is beside that of a daemon which keeps groups of this machine, or of its own. */
static void enter(void)
{
	scene_enter();
	mkdir(RUN, 0755);
	cr_assert_eq(mount("tmpfs", RUN, "tmpfs", 0, "mode=755"), 0, "%s", strerror(errno));
}

TestSuite(privileges, .init = enter, .timeout = TEST_SECONDS);

static const struct {
	const char *name;
	bool is_all; /* of what is documented, or nothing */
} sets[] = {
	{ "CapInh", false }, { "CapPrm", true },  { "CapEff", true },
	{ "CapBnd", true },  { "CapAmb", false },
};

static struct rights documented = { "nobody", NOBODY, { CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE } };

/* A line of /proc/PID/status, whose numbers are all read as hexadecimal. */
static uint64_t status_number(pid_t pid, const char *name)
{
	FILE *file CLEANUP(cleanup_file) = NULL;
	char line[256];
	size_t length = strlen(name);

	snprintf(line, sizeof(line), "/proc/%d/status", pid);
	file = fopen(line, "re");
	cr_assert_not_null(file);
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, name, length) && line[length] == ':')
			return strtoull(line + length + 1, NULL, 16);
	cr_assert_fail("/proc/PID/status has no %s", name);
	return 0;
}

static void expect_least_privilege(pid_t pid)
{
	uint64_t all = rights_documented(), found;
	size_t i;

	for (i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		found = status_number(pid, sets[i].name);
		cr_expect_eq(found, sets[i].is_all ? all : 0, "%s is %lx", sets[i].name,
			     (unsigned long)found);
	}
	cr_expect_eq(status_number(pid, "NoNewPrivs"), 1);
}

/* All that a daemon does: attaches, gives and takes slots, attaches again, detaches. */
static void expect_all_duties(const struct program_setup *setup)
{
	struct said said CLEANUP(said_done) = {};
	struct footprint footprint;
	struct scene scene, again;
	struct servers joined;
	struct program daemon;

	scene_start(&scene, "--workers", "2");
	daemon_start(&daemon, setup, &scene, "--detach-on-exit");
	await_steered_listeners(&scene, 2);
	expect_least_privilege(daemon.pid);
	servers_start(&joined, "--workers", "2", "--port", scene.port + 1);
	await_steered_listeners(&scene, 4);
	servers_stop(&joined);
	await_steered_listeners(&scene, 2);
	servers_stop(&scene.servers);
	scene_start(&again, "--workers", "3", "--port", scene.port + 1);
	await_steered_listeners(&again, 3);
	daemon_stop(&daemon, &said);
	cr_expect(strstr(said.error, "keeps CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE") != NULL, "%s",
		  said.error);
	footprint_look(&again.servers.endpoint, &footprint);
	cr_expect_eq(footprint.nr_listeners, 3);
	cr_expect_eq(footprint.prog_type, 0);
}

Test(privileges, the_daemon_of_root_gives_up_all_that_it_does_not_need)
{
	expect_all_duties(NULL);
	cr_expect_neq(access(PINS, F_OK), 0, "pins are left");
}

Test(privileges, an_ordinary_user_with_the_documented_capabilities_can_run_the_daemon)
{
	struct program_setup setup = { rights_keep, &documented };

	cr_assert_eq(chown(RUN, NOBODY, NOBODY), 0);
	expect_all_duties(&setup);
	cr_expect_neq(access(PINS, F_OK), 0, "pins are left");
}

/* The bpffs stays root's then, and the empty folder stays where it was made. */
Test(privileges, a_folder_for_pins_that_the_user_owns_is_enough)
{
	struct program_setup setup = { rights_keep, &documented };

	cr_assert_eq(chown(RUN, NOBODY, NOBODY), 0);
	cr_assert_eq(chmod("/sys/fs/bpf", 0755), 0);
	cr_assert_eq(mkdir(PINS, 0700), 0);
	cr_assert_eq(chown(PINS, NOBODY, NOBODY), 0);
	expect_all_duties(&setup);
	cr_expect_eq(rmdir(PINS), 0, "pins are left: %s", strerror(errno));
}

Test(privileges, commands_of_an_ordinary_user_find_workers_of_root_in_another_network)
{
	struct program_setup setup = { rights_keep, &documented };
	struct said attach CLEANUP(said_done) = {}, status CLEANUP(said_done) = {};
	struct said list CLEANUP(said_done) = {}, detach CLEANUP(said_done) = {};
	struct network home, other;
	struct scene scene;
	char path[64];

	network_current(&home);
	network_new(&other);
	network_enter(&other);
	scene_start(&scene, "--workers", "2");
	network_enter(&home);
	snprintf(path, sizeof(path), "/proc/%d/ns/net", scene.servers.pids[0]);
	program_run_in(&list, &setup, "list");
	expect_done(&list, "list", scene.group);
	program_run_in(&attach, &setup, "attach", scene.group, "--netns", path);
	expect_done(&attach, "attach", "steering 2 listeners of 2 workers");
	program_run_in(&status, &setup, "status", scene.group, "--netns", path);
	expect_done(&status, "status", "2 listeners, steered");
	program_run_in(&detach, &setup, "detach", scene.group, "--netns", path);
	expect_done(&detach, "detach", scene.group);
	network_done(&other);
	network_done(&home);
}

/* Files that another user owns: root without CAP_DAC_OVERRIDE, which the daemon is, is refused too. */
static void expect_owner_named(const struct program_setup *setup, const char *words)
{
	struct said said CLEANUP(said_done) = {};
	struct scene scene;

	scene_start(&scene, "--workers", "2");
	program_run_in(&said, setup, "run", scene.group, "--netns", scene.netns);
	cr_expect_eq(said.code, EXIT_MISSING, "%s", said.error);
	cr_expect(strstr(said.error, words) != NULL, "%s", said.error);
}

Test(privileges, a_bpffs_that_the_user_may_not_change_is_named)
{
	struct program_setup setup = { rights_keep, &documented };

	cr_assert_eq(chown(RUN, NOBODY, NOBODY), 0);
	cr_assert_eq(chmod("/sys/fs/bpf", 0700), 0);
	expect_owner_named(&setup, "user 65534 cannot keep pins in /sys/fs/bpf: Permission denied");
}

Test(privileges, pins_of_another_user_are_named_to_the_daemon_of_root)
{
	cr_assert_eq(mkdir(PINS, 0700), 0);
	cr_assert_eq(chown(PINS, NOBODY, NOBODY), 0);
	expect_owner_named(NULL, "user 0 cannot keep pins in /sys/fs/bpf/socksteer");
}

Test(privileges, a_folder_for_the_lock_that_the_user_may_not_change_is_named)
{
	struct program_setup setup = { rights_keep, &documented };

	expect_owner_named(&setup, "user 65534 has to own /run/socksteer");
}
