/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bad input: each mistake is told in one sentence that says what to do, with the exit code for its
 * kind. The group is as before then: no program, no pins, and it serves.
 */
#include "base/cleanup.h"
#include "kernel/tables.h"
#include "kernel/values.h"
#include "support/program.h"
#include "support/sandbox.h"
#include "support/scene.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>

TestSuite(refusals, .init = scene_enter, .timeout = TEST_SECONDS);

static const struct {
	const char *name;
	const char *arguments[5];
	const char *words;
} mistakes[] = {
	{ "no command", { NULL }, "a command is missing" },
	{ "unknown command", { "steer" }, "there is no command \"steer\"" },
	{ "command with control characters",
	  { "li\x1b[2Jst" },
	  "there is no command \"li\\x1b[2Jst\"" },
	{ "help of an unknown command", { "help", "steer" }, "there is no command \"steer\"" },
	{ "unknown option", { "attach", "--fast", "8080" }, "there is no option \"--fast\"" },
	{ "option of another command", { "list", "--force" }, "there is no option \"--force\"" },
	{ "no value", { "attach", "8080", "--policy" }, "--policy needs a value" },
	{ "unknown policy",
	  { "attach", "8080", "--policy", "fastest" },
	  "there is no policy \"fastest\"; there is least-loaded, least-conn, p2c, round-robin, hash" },
	{ "unknown policy of a group",
	  { "policy", "8080", "fastest" },
	  "there is no policy \"fastest\"" },
	{ "no group", { "attach" }, "usage: socksteer attach GROUP" },
	{ "two groups", { "attach", "8080", "8081" }, "too many arguments" },
	{ "nothing to detach", { "detach" }, "GROUP or --all is missing" },
	{ "a group and all", { "detach", "8080", "--all" }, "exclude each other" },
	{ "an address that is none", { "attach", "127.0.0.256:80" }, "is not a group" },
	{ "a name", { "attach", "localhost:80" }, "is not a group" },
	{ "no port", { "attach", "127.0.0.1:" }, "is not a group" },
	{ "port 0", { "attach", "0" }, "is not a group" },
	{ "port 65536", { "attach", "127.0.0.1:65536" }, "is not a group" },
	{ "a negative port", { "attach", "--", "-1" }, "is not a group" },
	{ "a port and more", { "attach", "80x" }, "is not a group" },
	{ "an empty group", { "attach", "" }, "is not a group" },
	{ "IPv6 without brackets", { "attach", "::1:80" }, "is not a group" },
	{ "an open bracket", { "status", "[::1:80" }, "is not a group" },
	{ "process 0", { "attach", "80", "--pid", "0" }, "--pid takes the number of a process" },
	{ "no process",
	  { "attach", "80", "--pid", "nginx" },
	  "--pid takes the number of a process" },
	{ "inode 0", { "attach", "80", "--netns", "0" }, "an inode number is 1 to" },
	{ "a file that is not there",
	  { "attach", "80", "--netns", "/run/netns/nowhere" },
	  "No such file" },
	{ "a file that is no network",
	  { "attach", "80", "--netns", "/dev/null" },
	  "is not a network namespace" },
};

Test(refusals, a_wrong_command_line_is_refused_with_what_would_be_right)
{
	struct scene scene;
	size_t i;

	scene_start(&scene, "--workers", "2");
	for (i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		struct said said CLEANUP(said_done) = {};

		program_run_list(&said, NULL, mistakes[i].arguments);
		expect_refused(&said, mistakes[i].name, EXIT_USAGE, mistakes[i].words);
	}
	expect_untouched(&scene.servers.endpoint, "mistakes");
}

static const struct {
	const char *name;
	const char *arguments[4];
	const char *words;
} unfit[] = {
	{ "one listener", { "--workers", "1" }, "one listener, 1 process: nothing to steer" },
	{ "a shared listener", { "--workers", "3", "--shared" }, "one listener, 4 processes" },
	{ "no SO_REUSEPORT", { "--workers", "2", "--no-reuseport" }, "not a reuseport listener" },
	{ "MPTCP", { "--workers", "2", "--mptcp" }, "MPTCP" },
};

Test(refusals, what_cannot_be_steered_is_refused_with_the_reason)
{
	size_t i;

	for (i = 0; i < sizeof(unfit) / sizeof(unfit[0]); i++) {
		struct said said CLEANUP(said_done) = {};
		struct scene scene;

		scene_start_list(&scene, unfit[i].arguments);
		program_run(&said, "attach", scene.group, "--netns", scene.netns);
		expect_refused(&said, unfit[i].name, EXIT_NOTHING, unfit[i].words);
		expect_untouched(&scene.servers.endpoint, unfit[i].name);
		servers_stop(&scene.servers);
	}
}

Test(refusals, a_group_that_is_not_there_is_refused)
{
	static const char *const commands[] = { "attach", "status", "detach" };
	struct scene scene;
	size_t i;

	scene_start(&scene, "--workers", "2");
	servers_stop(&scene.servers);
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct said said CLEANUP(said_done) = {};

		program_run(&said, commands[i], scene.port, "--netns", scene.netns);
		expect_refused(&said, commands[i], EXIT_NOTHING, "\"socksteer list\" shows");
	}
}

Test(refusals, a_process_that_died_meanwhile_has_no_group)
{
	struct said said CLEANUP(said_done) = {};
	char dead[NUMBER_BYTES];
	struct scene scene;

	scene_start(&scene, "--workers", "3");
	servers_kill(&scene.servers, 1, SIGKILL);
	number_format((uint64_t)scene.servers.pids[1], dead);
	program_run(&said, "attach", scene.port, "--netns", scene.netns, "--pid", dead);
	expect_refused(&said, "dead process", EXIT_NOTHING, "in that process");
	expect_untouched(&scene.servers.endpoint, "dead process");
}

/* Four arguments, or fewer and NULL. */
static void run_refused(const char *const command[4], enum exit_code code, const char *words)
{
	const char *const arguments[] = { command[0], command[1], command[2], command[3], NULL };
	struct said said CLEANUP(said_done) = {};

	program_run_list(&said, NULL, arguments);
	expect_refused(&said, command[0], code, words);
}

/* Not just unmounted: below the sandbox's bpffs is the machine's. */
Test(refusals, without_a_bpffs_each_command_says_how_to_mount_one)
{
	struct scene scene;
	size_t i;

	scene_start(&scene, "--workers", "2");
	cr_assert_eq(mount("tmpfs", "/sys/fs/bpf", "tmpfs", 0, NULL), 0, "%s", strerror(errno));
	const char *const commands[][4] = {
		{ "attach", scene.port, "--netns", scene.netns },
		{ "status", NULL },
		{ "policy", scene.port, "hash" },
		{ "detach", scene.port },
		{ "detach", "--all" },
	};

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		run_refused(commands[i], EXIT_MISSING,
			    "mount it with \"mount -t bpf bpf /sys/fs/bpf\"");
	expect_untouched(&scene.servers.endpoint, "no bpffs");
}

/* Said after the line about what the daemon may still do. */
Test(refusals, without_a_bpffs_run_says_how_to_mount_one)
{
	struct said said CLEANUP(said_done) = {};
	struct scene scene;

	scene_start(&scene, "--workers", "2");
	cr_assert_eq(mount("tmpfs", "/sys/fs/bpf", "tmpfs", 0, NULL), 0, "%s", strerror(errno));
	program_run(&said, "run", scene.port, "--netns", scene.netns);
	cr_expect_eq(said.code, EXIT_MISSING, "%s", said.error);
	cr_expect(strstr(said.error, "mount it with \"mount -t bpf bpf /sys/fs/bpf\"\n") != NULL,
		  "%s", said.error);
	expect_untouched(&scene.servers.endpoint, "no bpffs");
}

Test(refusals, without_the_types_of_the_kernel_each_command_says_which_kernel_has_them)
{
	struct scene scene;
	size_t i;

	scene_start(&scene, "--workers", "2");
	cr_assert_eq(mount("tmpfs", "/sys/kernel/btf", "tmpfs", 0, NULL), 0, "%s", strerror(errno));
	const char *const commands[][4] = {
		{ "attach", scene.group, "--netns", scene.netns },
		{ "list" },
		{ "status" },
		{ "detach", "--all" },
	};

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		run_refused(commands[i], EXIT_MISSING, "CONFIG_DEBUG_INFO_BTF=y");
	cr_assert_eq(umount("/sys/kernel/btf"), 0);
	expect_untouched(&scene.servers.endpoint, "no BTF");
}

static void write_layout(uint32_t version)
{
	struct tables tables CLEANUP(tables_done) = TABLES_NONE;
	struct layout layout = { .version = version };
	struct failure failure = {};

	cr_assert_eq(tables_open(&tables, &failure), 0, "%s", failure.message);
	cr_assert_eq(value_write(tables.layout, 0, &layout), 0);
}

Test(refusals, pins_of_another_layout_are_refused_until_everything_is_detached)
{
	struct said attach CLEANUP(said_done) = {}, status CLEANUP(said_done) = {};
	struct said detach CLEANUP(said_done) = {}, all CLEANUP(said_done) = {};
	struct footprint before, after;
	struct scene scene;

	scene_start(&scene, "--workers", "2");
	scene_attach(&scene);
	write_layout(LAYOUT_VERSION + 1);
	footprint_look(&scene.servers.endpoint, &before);
	program_run(&attach, "attach", scene.group, "--netns", scene.netns);
	expect_refused(&attach, "attach", EXIT_FAILED, "run \"socksteer detach --all\"");
	program_run(&status, "status");
	expect_refused(&status, "status", EXIT_FAILED, "run \"socksteer detach --all\"");
	program_run(&detach, "detach", scene.group, "--netns", scene.netns);
	expect_refused(&detach, "detach", EXIT_FAILED, "run \"socksteer detach --all\"");
	footprint_look(&scene.servers.endpoint, &after);
	cr_expect_eq(after.prog_id, before.prog_id);

	program_run(&all, "detach", "--all");
	expect_done(&all, "detach --all", "1 group: no longer steered");
	expect_untouched(&scene.servers.endpoint, "detach --all");
	scene_attach(&scene);
}

/* Expects that the list of choices names the group of a scene. */
static void expect_choice(const struct said *said, const struct scene *scene)
{
	char line[256];

	snprintf(line, sizeof(line), "\n  %s --netns %s\n", scene->group, scene->netns);
	cr_expect(strstr(said->error, line), "\"%s\" is not in \"%s\"", line, said->error);
}

Test(refusals, a_port_that_several_groups_have_is_refused_with_the_list)
{
	struct said said CLEANUP(said_done) = {};
	struct scene first, second;

	scene_start(&first, "--workers", "2");
	scene_start(&second, "--workers", "2", "--address", "::1", "--port", first.port + 1);
	program_run(&said, "attach", first.port, "--netns", first.netns);
	cr_expect_eq(said.code, EXIT_USAGE, "%s", said.error);
	cr_expect(strstr(said.error, " matches several groups; name one by"), "%s", said.error);
	expect_choice(&said, &first);
	expect_choice(&said, &second);
	expect_untouched(&first.servers.endpoint, "ambiguous");
	expect_untouched(&second.servers.endpoint, "ambiguous");
}

Test(refusals, an_address_that_several_networks_have_is_refused_with_the_list)
{
	struct said said CLEANUP(said_done) = {};
	struct scene first, second;
	struct network network;

	scene_start(&first, "--workers", "2");
	network_new(&network);
	network_enter(&network);
	scene_start(&second, "--workers", "2", "--port", first.port + 1);
	program_run(&said, "attach", first.group);
	cr_expect_eq(said.code, EXIT_USAGE, "%s", said.error);
	expect_choice(&said, &first);
	expect_choice(&said, &second);
	expect_untouched(&second.servers.endpoint, "ambiguous");
	network_done(&network);
}

/* In the child. */
static int write_to_full_disk(void *argument)
{
	int fd CLEANUP(cleanup_fd) = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)argument;
	return fd < 0 || dup2(fd, STDOUT_FILENO) < 0 ? -errno : 0;
}

Test(refusals, output_that_cannot_be_written_is_a_failure)
{
	static const struct program_setup setup = { .prepare = write_to_full_disk };
	static const char *const commands[][4] = {
		{ "version" },	      { "help" },   { "help", "attach" },   { "list" },
		{ "list", "--json" }, { "status" }, { "status", "--json" }, { "detach", "--all" },
	};
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct said said CLEANUP(said_done) = {};

		program_run_list(&said, &setup, commands[i]);
		expect_refused(&said, commands[i][0], EXIT_FAILED,
			       "cannot write to standard output");
	}
}
