/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the daemon may do once it has begun: what it needs, and nothing else, whoever started it. And
 * whose the pins and the locks have to be.
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
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PINS "/sys/fs/bpf/socksteer"
#define RUN "/run/socksteer"

/* Its locks are beside those of a daemon which keeps groups of this machine, or of its own. */
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

	cr_assert_eq(chown(RUN, NOBODY, NOBODY), 0);
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

/* In a child, as nobody: locks the bpffs, says so, and stays until the test ends. */
static void hold_bpffs(int ready)
{
	int fd;

	if (setgid(NOBODY) || setuid(NOBODY) ||
	    prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0UL, 0UL, 0UL))
		_exit(1);
	fd = open("/sys/fs/bpf", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX) || write(ready, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

Test(privileges, a_stranger_who_locks_the_bpffs_hinders_no_change)
{
	struct scene scene;
	int ends[2];
	char byte;

	cr_assert_eq(chmod("/sys/fs/bpf", 0755), 0);
	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
	if (!fork())
		hold_bpffs(ends[1]);
	close(ends[1]);
	cr_assert_eq(read(ends[0], &byte, 1), 1, "nobody cannot lock the bpffs");
	close(ends[0]);
	scene_start(&scene, "--workers", "2");
	scene_attach(&scene);
	program_succeeds("detach", scene.group, "--netns", scene.netns);
}

/* The one file that fits. */
static void lock_look(const char *pattern, struct stat *ret_status)
{
	glob_t found = {};

	cr_assert_eq(glob(pattern, 0, NULL, &found), 0, "no %s", pattern);
	cr_assert_eq(found.gl_pathc, 1, "%zu of %s", (size_t)found.gl_pathc, pattern);
	cr_assert_eq(stat(found.gl_pathv[0], ret_status), 0);
	globfree(&found);
}

Test(privileges, only_its_owner_can_open_the_lock_of_the_pins)
{
	struct scene scene;
	struct stat lock;

	/* The program makes the folder too. */
	cr_assert_eq(umount(RUN), 0);
	cr_assert_eq(mount("tmpfs", "/run", "tmpfs", 0, "mode=755"), 0, "%s", strerror(errno));
	scene_start(&scene, "--workers", "2");
	scene_attach(&scene);
	lock_look(RUN "/pins-*.lock", &lock);
	cr_expect_eq(lock.st_mode, S_IFREG | 0600, "%o", lock.st_mode);
	cr_expect_eq(lock.st_uid, 0);
}

Test(privileges, a_lock_that_root_makes_in_the_folder_of_a_user_is_that_users)
{
	struct program_setup setup = { rights_keep, &documented };
	struct said said CLEANUP(said_done) = {};
	struct scene scene;
	struct stat lock;

	cr_assert_eq(chown(RUN, NOBODY, NOBODY), 0);
	cr_assert_eq(mkdir(PINS, 0700), 0);
	cr_assert_eq(chown(PINS, NOBODY, NOBODY), 0);
	scene_start(&scene, "--workers", "2");
	program_succeeds("detach", "--all");
	lock_look(RUN "/pins-*.lock", &lock);
	cr_expect_eq(lock.st_uid, NOBODY);
	program_run_in(&said, &setup, "attach", scene.group, "--netns", scene.netns);
	expect_done(&said, "attach", "steering 2 listeners of 2 workers");
}

static void expect_lock_refused(enum exit_code code, const char *words)
{
	struct said said CLEANUP(said_done) = {};
	struct scene scene;

	scene_start(&scene, "--workers", "2");
	program_run(&said, "attach", scene.group, "--netns", scene.netns);
	expect_refused(&said, words, code, words);
	expect_untouched(&scene.servers.endpoint, words);
}

Test(privileges, a_folder_for_the_locks_that_a_stranger_can_change_is_refused)
{
	cr_assert_eq(chown(RUN, NOBODY, NOBODY), 0);
	expect_lock_refused(EXIT_MISSING,
			    "its folder is user 65534's; user 0 has to own /run/socksteer");
	cr_assert_eq(chown(RUN, 0, 0), 0);
	cr_assert_eq(chmod(RUN, 01777), 0);
	expect_lock_refused(EXIT_MISSING,
			    "everybody may change /run/socksteer; \"chmod 755 /run/socksteer\"");
}

Test(privileges, a_link_in_place_of_the_lock_is_not_followed)
{
	char path[64];
	struct stat bpffs;

	cr_assert_eq(stat("/sys/fs/bpf", &bpffs), 0);
	snprintf(path, sizeof(path), RUN "/pins-%lu.lock", (unsigned long)bpffs.st_dev);
	cr_assert_eq(symlink("/tmp/elsewhere", path), 0);
	expect_lock_refused(EXIT_FAILED, "cannot open the lock");
}
