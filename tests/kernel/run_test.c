/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * socksteer run: the daemon as a child process, kept honest by looks from outside.
 */
#include "base/cleanup.h"
#include "support/plain_group.h"
#include "support/program.h"
#include "support/sandbox.h"
#include "support/scene.h"
#include "support/steered.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

TestSuite(run, .init = scene_enter, .timeout = TEST_SECONDS);

/* What a test waits for: the number of listeners in slots of a steered group. */
struct expected {
	const struct scene *scene;
	size_t nr_listeners;
};

/* True if the group is steered, and as many listeners as expected are in slots. */
static bool is_steered(void *argument)
{
	const struct expected *expected = argument;
	struct status status CLEANUP(status_done) = {};
	struct failure failure = {};
	char text[ENDPOINT_TEXT_BYTES];
	struct group_spec spec;

	spec_of_endpoint(&expected->scene->servers.endpoint, text, &spec);
	return !status_read(&spec, &status, &failure) && status.nr_groups == 1 &&
	       status.groups[0].steered && status.groups[0].nr_listeners == expected->nr_listeners;
}

static void await_steered(const struct scene *scene, size_t nr_listeners)
{
	struct expected expected = { scene, nr_listeners };

	cr_assert(wait_until(is_steered, &expected, DEADLINE_MS), "never %zu listeners steered",
		  nr_listeners);
}

static void run_start(struct program *daemon, const struct scene *scene, const char *option)
{
	program_start(daemon, NULL,
		      (const char *const[]){ "run", scene->port, "--netns", scene->netns, option,
					     NULL });
}

/* Ends the daemon as systemd does, and expects that it ends well. */
static void run_stop(struct program *daemon, struct said *said)
{
	kill(daemon->pid, SIGTERM);
	program_wait(daemon, said);
	cr_expect_eq(said->code, EXIT_DONE, "%s", said->error);
}

/* Sockets among the descriptors of a process. */
static size_t count_sockets(pid_t pid)
{
	DIR *dir CLEANUP(cleanup_dir) = NULL;
	char path[64], link[320], target[64];
	struct dirent *entry;
	size_t count = 0;
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	cr_assert(dir);
	while ((entry = readdir(dir))) {
		snprintf(link, sizeof(link), "%s/%s", path, entry->d_name);
		length = readlink(link, target, sizeof(target) - 1);
		count += length > 7 && !strncmp(target, "socket:", 7);
	}
	return count;
}

Test(run, a_listener_that_joins_gets_a_slot_and_one_that_leaves_loses_it)
{
	struct said said CLEANUP(said_done) = {};
	struct servers joined;
	struct program daemon;
	struct scene scene;

	scene_start(&scene, "--workers", "2");
	run_start(&daemon, &scene, NULL);
	await_steered(&scene, 2);
	servers_start(&joined, "--workers", "3", "--port", scene.port + 1);
	await_steered(&scene, 5);
	servers_kill(&joined, 1, SIGKILL);
	await_steered(&scene, 4);
	cr_expect_eq(count_sockets(daemon.pid), 0, "the daemon holds a socket");
	servers_stop(&joined);
	await_steered(&scene, 2);
	run_stop(&daemon, &said);
	/* It ended, steering did not. */
	await_steered(&scene, 2);
	cr_expect(strstr(said.error, "joined") != NULL, "%s", said.error);
}

Test(run, a_group_that_appears_later_and_one_that_comes_back_are_steered)
{
	struct said said CLEANUP(said_done) = {};
	struct program daemon;
	struct scene scene, again;

	scene_start(&scene, "--workers", "2");
	servers_stop(&scene.servers);
	run_start(&daemon, &scene, NULL);
	scene_start(&again, "--workers", "3", "--port", scene.port + 1);
	await_steered(&again, 3);
	servers_stop(&again.servers);
	scene_start(&again, "--workers", "4", "--port", scene.port + 1);
	await_steered(&again, 4);
	run_stop(&daemon, &said);
	cr_expect(strstr(said.error, "came back and is steered again") != NULL, "%s", said.error);
}

Test(run, detach_on_exit_leaves_nothing)
{
	struct said said CLEANUP(said_done) = {};
	struct program daemon;
	struct scene scene;

	scene_start(&scene, "--workers", "2");
	run_start(&daemon, &scene, "--detach-on-exit");
	await_steered(&scene, 2);
	run_stop(&daemon, &said);
	expect_untouched(&scene.servers.endpoint, "the end of run");
}

Test(run, a_second_daemon_is_refused_and_a_killed_one_can_be_followed)
{
	struct said second CLEANUP(said_done) = {}, killed CLEANUP(said_done) = {};
	struct said followed CLEANUP(said_done) = {};
	struct program daemon;
	struct scene scene;

	scene_start(&scene, "--workers", "2");
	run_start(&daemon, &scene, NULL);
	await_steered(&scene, 2);
	program_run(&second, "run", scene.port, "--netns", scene.netns);
	cr_expect_eq(second.code, EXIT_FAILED);
	cr_expect(strstr(second.error, "another \"socksteer run\"") != NULL, "%s", second.error);
	kill(daemon.pid, SIGKILL);
	program_wait(&daemon, &killed);
	await_steered(&scene, 2);
	run_start(&daemon, &scene, "--detach-on-exit");
	await_steered(&scene, 2);
	run_stop(&daemon, &followed);
	expect_untouched(&scene.servers.endpoint, "the end of the second run");
}
