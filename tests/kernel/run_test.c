/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * socksteer run: the daemon as a child process, kept honest by looks from outside.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "kernel/group_maps.h"
#include "kernel/pins.h"
#include "kernel/remote.h"
#include "kernel/tables.h"
#include "kernel/values.h"
#include "steering/attach.h"
#include "steering/scan.h"
#include "support/clients.h"
#include "support/daemon.h"
#include "support/plain_group.h"
#include "support/program.h"
#include "support/sandbox.h"
#include "support/scene.h"
#include "support/steered.h"
#include "support/waiting.h"

#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(run, .init = scene_enter, .timeout = TEST_SECONDS);

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
	daemon_start(&daemon, NULL, &scene, NULL);
	await_steered_listeners(&scene, 2);
	servers_start(&joined, "--workers", "3", "--port", scene.port + 1);
	await_steered_listeners(&scene, 5);
	servers_kill(&joined, 1, SIGKILL);
	await_steered_listeners(&scene, 4);
	cr_expect_eq(count_sockets(daemon.pid), 0, "the daemon holds a socket");
	servers_stop(&joined);
	await_steered_listeners(&scene, 2);
	daemon_stop(&daemon, &said);
	/* It ended, steering did not. */
	await_steered_listeners(&scene, 2);
	cr_expect(strstr(said.error, "joined") != NULL, "%s", said.error);
}

Test(run, a_group_that_appears_later_and_one_that_comes_back_are_steered)
{
	struct said said CLEANUP(said_done) = {};
	struct program daemon;
	struct scene scene, again;

	scene_start(&scene, "--workers", "2");
	servers_stop(&scene.servers);
	daemon_start(&daemon, NULL, &scene, NULL);
	scene_start(&again, "--workers", "3", "--port", scene.port + 1);
	await_steered_listeners(&again, 3);
	servers_stop(&again.servers);
	scene_start(&again, "--workers", "4", "--port", scene.port + 1);
	await_steered_listeners(&again, 4);
	daemon_stop(&daemon, &said);
	cr_expect(strstr(said.error, "came back and is steered again") != NULL, "%s", said.error);
}

Test(run, detach_on_exit_leaves_nothing)
{
	struct said said CLEANUP(said_done) = {};
	struct program daemon;
	struct scene scene;

	scene_start(&scene, "--workers", "2");
	daemon_start(&daemon, NULL, &scene, "--detach-on-exit");
	await_steered_listeners(&scene, 2);
	daemon_stop(&daemon, &said);
	expect_untouched(&scene.servers.endpoint, "the end of run");
}

Test(run, a_second_daemon_is_refused_and_a_killed_one_can_be_followed)
{
	struct said second CLEANUP(said_done) = {}, killed CLEANUP(said_done) = {};
	struct said followed CLEANUP(said_done) = {};
	struct program daemon;
	struct scene scene;

	scene_start(&scene, "--workers", "2");
	daemon_start(&daemon, NULL, &scene, NULL);
	await_steered_listeners(&scene, 2);
	program_run(&second, "run", scene.port, "--netns", scene.netns);
	cr_expect_eq(second.code, EXIT_FAILED);
	cr_expect(strstr(second.error, "another \"socksteer run\"") != NULL, "%s", second.error);
	kill(daemon.pid, SIGKILL);
	program_wait(&daemon, &killed);
	await_steered_listeners(&scene, 2);
	daemon_start(&daemon, NULL, &scene, "--detach-on-exit");
	await_steered_listeners(&scene, 2);
	daemon_stop(&daemon, &followed);
	expect_untouched(&scene.servers.endpoint, "the end of the second run");
}

/* Attaches a program that selects nothing, as another project might, through a worker's listener. */
static void attach_other(const struct scene *scene)
{
	const struct bpf_insn instructions[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = SK_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int program =
		bpf_prog_load(BPF_PROG_TYPE_SK_REUSEPORT, "other", "GPL", instructions, 2, NULL);
	struct inventory inventory CLEANUP(inventory_done) = {};
	const struct group *group = NULL;
	struct failure failure = {};
	char text[ENDPOINT_TEXT_BYTES];
	struct group_spec spec;
	size_t i;
	int fd;

	cr_assert_geq(program, 0);
	spec_of_endpoint(&scene->servers.endpoint, text, &spec);
	cr_assert_eq(inventory_scan(&inventory, &failure), 0, "%s", failure.message);
	for (i = 0; i < inventory.nr_groups && !group; i++)
		if (group_spec_matches(&spec, &inventory.groups[i]))
			group = &inventory.groups[i];
	cr_assert(group);
	cr_assert_eq(remote_listener_take(group->listeners[0].holders[0].pid,
					  group->listeners[0].holders[0].fd,
					  group->listeners[0].cookie, &fd),
		     0);
	cr_assert_eq(reuseport_attach(fd, program), 0);
	close(fd);
	close(program);
}

/* What a test waits for in the log of a daemon that runs. */
struct awaited {
	const struct program *daemon;
	const char *words;
	size_t times;
};

static size_t count_words(const struct program *daemon, const char *words)
{
	static char text[65536];
	ssize_t length = pread(daemon->error, text, sizeof(text) - 1, 0);
	const char *found = text;
	size_t count = 0;

	text[length > 0 ? length : 0] = '\0';
	while ((found = strstr(found, words))) {
		found += strlen(words);
		count++;
	}
	return count;
}

static bool has_said(void *argument)
{
	const struct awaited *awaited = argument;

	return count_words(awaited->daemon, awaited->words) >= awaited->times;
}

static void await_words(const struct program *daemon, const char *words, size_t times)
{
	struct awaited awaited = { daemon, words, times };

	cr_assert(wait_until(has_said, &awaited, DEADLINE_MS), "never said \"%s\" %zu times", words,
		  times);
}

Test(run, another_program_over_ours_is_noticed_reported_once_and_not_fought)
{
	struct said said CLEANUP(said_done) = {}, forced CLEANUP(said_done) = {};
	struct servers joined;
	struct program daemon;
	struct scene scene;

	scene_start(&scene, "--workers", "2");
	daemon_start(&daemon, NULL, &scene, NULL);
	await_steered_listeners(&scene, 2);
	attach_other(&scene);
	await_words(&daemon, "another program was attached over ours", 1);
	/* A change of the group makes the daemon look at it again. */
	servers_start(&joined, "--workers", "1", "--port", scene.port + 1);
	cr_expect(!has_steered_listeners(&scene, 2));
	program_run(&forced, "attach", scene.port, "--netns", scene.netns, "--force");
	cr_assert_eq(forced.code, EXIT_DONE, "%s", forced.error);
	await_steered_listeners(&scene, 3);
	servers_stop(&joined);
	await_steered_listeners(&scene, 2);
	cr_expect_eq(count_words(&daemon, "another program was attached over ours"), 1);
	daemon_stop(&daemon, &said);
}

Test(run, a_detach_by_hand_is_respected_until_it_is_taken_back)
{
	struct said said CLEANUP(said_done) = {};
	struct servers joined;
	struct program daemon;
	struct scene scene;

	scene_start(&scene, "--workers", "2");
	daemon_start(&daemon, NULL, &scene, NULL);
	await_steered_listeners(&scene, 2);
	program_succeeds("detach", scene.port, "--netns", scene.netns);
	expect_untouched(&scene.servers.endpoint, "a detach by hand");
	await_words(&daemon, "detached by hand", 1);
	expect_untouched(&scene.servers.endpoint, "a daemon that knows of it");
	scene_attach(&scene);
	servers_start(&joined, "--workers", "1", "--port", scene.port + 1);
	await_steered_listeners(&scene, 3);
	daemon_stop(&daemon, &said);
}

Test(run, after_everything_was_detached_by_hand_a_signal_takes_it_back)
{
	struct said said CLEANUP(said_done) = {};
	struct servers joined;
	struct program daemon;
	struct scene scene;

	scene_start(&scene, "--workers", "2");
	daemon_start(&daemon, NULL, &scene, NULL);
	await_steered_listeners(&scene, 2);
	program_succeeds("detach", "--all");
	await_words(&daemon, "everything was detached by hand", 1);
	servers_start(&joined, "--workers", "1", "--port", scene.port + 1);
	expect_untouched(&scene.servers.endpoint, "a detach of everything");
	kill(daemon.pid, SIGHUP);
	await_steered_listeners(&scene, 3);
	servers_stop(&joined);
	await_steered_listeners(&scene, 2);
	daemon_stop(&daemon, &said);
}

/* Opens and closes a listener of its own so often that the ring of events overflows. */
static void fill_ring(void)
{
	struct plain_group group;
	size_t i;

	plain_group_init(&group, "127.0.0.1", "0");
	for (i = 0; i < EVENTS_BYTES / sizeof(struct event); i++) {
		plain_group_add(&group, PLAIN_BACKLOG);
		plain_group_close(&group, 0);
		group.nr = 0;
	}
	plain_group_done(&group);
}

static uint64_t nr_switches(pid_t pid)
{
	char path[64], line[128];
	unsigned long count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	cr_assert(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "voluntary_ctxt_switches: %lu", &count) == 1)
			break;
	fclose(file);
	return count;
}

struct quiet {
	pid_t pid;
	uint64_t nr_switches;
	uint64_t since_ns;
};

/* Longer than the daemon's second look after a change, shorter than the time between its timers. */
static bool is_quiet(void *argument)
{
	struct quiet *quiet = argument;
	uint64_t now = nr_switches(quiet->pid);

	if (now != quiet->nr_switches)
		quiet->since_ns = clock_now_ns();
	quiet->nr_switches = now;
	return clock_now_ns() - quiet->since_ns > 300000000;
}

static void await_quiet(const struct program *daemon)
{
	struct quiet quiet = { .pid = daemon->pid };

	cr_assert(wait_until(is_quiet, &quiet, DEADLINE_MS), "the daemon is never quiet");
}

Test(run, events_that_were_lost_are_made_up_for_by_a_scan)
{
	struct said said CLEANUP(said_done) = {};
	struct servers joined;
	struct program daemon;
	struct scene scene;

	scene_start(&scene, "--workers", "2");
	daemon_start(&daemon, NULL, &scene, NULL);
	await_steered_listeners(&scene, 2);
	await_quiet(&daemon);
	kill(daemon.pid, SIGSTOP);
	fill_ring();
	servers_start(&joined, "--workers", "2", "--port", scene.port + 1);
	kill(daemon.pid, SIGCONT);
	await_steered_listeners(&scene, 4);
	daemon_stop(&daemon, &said);
}

/* Makes the pins look like those of a version to come, whose settings are larger. */
static void age_pins(void)
{
	struct tables tables CLEANUP(tables_done) = TABLES_NONE;
	struct layout layout = { .version = LAYOUT_VERSION + 1 };
	struct failure failure = {};
	char path[PIN_PATH_SIZE], **folders;
	size_t nr_folders;
	int settings;

	cr_assert_eq(tables_open(&tables, &failure), 0, "%s", failure.message);
	cr_assert_eq(value_write(tables.layout, 0, &layout), 0);
	cr_assert_eq(pins_list(&folders, &nr_folders), 0);
	cr_assert_eq(nr_folders, 1);
	cr_assert_eq(pin_path(folders[0], "settings", path), 0);
	pins_list_free(folders, nr_folders);
	settings = bpf_map_create(BPF_MAP_TYPE_ARRAY, "settings", 4, 4096, 1, NULL);
	cr_assert_geq(settings, 0);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(bpf_obj_pin(settings, path), 0);
	close(settings);
}

struct visits {
	const struct endpoint *to;
	atomic_bool stop;
};

static void *visit_on(void *argument)
{
	struct visits *visits = argument;

	while (!atomic_load(&visits->stop))
		clients_visit(visits->to, 20, 1, END_CLIENT_FIRST);
	return NULL;
}

/* True if the listeners of the group hold 20 connections in all. */
static bool holds_twenty(void *argument)
{
	const struct scene *scene = argument;
	struct status status CLEANUP(status_done) = {};
	struct failure failure = {};
	char text[ENDPOINT_TEXT_BYTES];
	struct group_spec spec;
	uint64_t held = 0;
	size_t i;

	spec_of_endpoint(&scene->servers.endpoint, text, &spec);
	if (status_read(&spec, &status, &failure))
		return false;
	for (i = 0; i < status.groups[0].nr_listeners; i++)
		held += status.groups[0].listeners[i].held;
	return held == 20;
}

Test(run, pins_of_another_layout_are_taken_over_while_connections_come)
{
	struct said said CLEANUP(said_done) = {};
	struct clients clients CLEANUP(clients_done) = {};
	struct visits visits = {};
	struct program daemon;
	struct scene scene;
	pthread_t thread;

	scene_start(&scene, "--workers", "4");
	scene_attach(&scene);
	clients_hold(&clients, &scene.servers.endpoint, 20);
	age_pins();
	visits.to = &scene.servers.endpoint;
	cr_assert_eq(pthread_create(&thread, NULL, visit_on, &visits), 0);
	daemon_start(&daemon, NULL, &scene, NULL);
	await_steered_listeners(&scene, 4);
	atomic_store(&visits.stop, true);
	pthread_join(thread, NULL);
	cr_expect(wait_until(holds_twenty, &scene, DEADLINE_MS), "the counters are off");
	daemon_stop(&daemon, &said);
	cr_expect(strstr(said.error, "another version's layout") != NULL, "%s", said.error);
	program_succeeds("audit");
}

Test(run, a_group_that_begins_with_one_listener_is_steered_once_it_has_more)
{
	struct said said CLEANUP(said_done) = {};
	struct program daemon;
	struct servers more;
	struct scene scene;

	scene_start(&scene, "--workers", "1");
	daemon_start(&daemon, NULL, &scene, NULL);
	daemon_await_said(&daemon, "nothing to steer");
	await_quiet(&daemon);
	servers_start(&more, "--workers", "2", "--port", scene.port + 1);
	await_steered_listeners(&scene, 3);
	daemon_stop(&daemon, &said);
	cr_expect(strstr(said.error, "detached by hand") == NULL, "%s", said.error);
	servers_stop(&more);
}
