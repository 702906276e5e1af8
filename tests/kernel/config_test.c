/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * socksteer run with a file: what it keeps, and what a reload changes while connections come in.
 */
#include "base/cleanup.h"
#include "support/clients.h"
#include "support/daemon.h"
#include "support/sandbox.h"
#include "support/scene.h"
#include "support/steered.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

TestSuite(config, .init = scene_enter, .timeout = TEST_SECONDS);

/* Short connections, one after another, for as long as it runs. */
struct stream {
	struct endpoint endpoint;
	pthread_t thread;
	atomic_bool ends;
	atomic_ulong nr_done;
};

static void *stream_run(void *argument)
{
	struct stream *stream = argument;

	while (!atomic_load(&stream->ends)) {
		clients_visit(&stream->endpoint, 1, 1, END_WORKER_FIRST);
		atomic_fetch_add(&stream->nr_done, 1);
	}
	return NULL;
}

static void stream_start(struct stream *stream, const struct endpoint *endpoint)
{
	*stream = (struct stream){ .endpoint = *endpoint };
	cr_assert_eq(pthread_create(&stream->thread, NULL, stream_run, stream), 0);
}

struct stream_wait {
	struct stream *stream;
	unsigned long nr_done;
};

static bool has_done(void *argument)
{
	const struct stream_wait *wait = argument;

	return atomic_load(&wait->stream->nr_done) >= wait->nr_done;
}

/* Waits until so many more connections were made. */
static void stream_await(struct stream *stream, unsigned long nr_more)
{
	struct stream_wait wait = { stream, atomic_load(&stream->nr_done) + nr_more };

	cr_assert(wait_until(has_done, &wait, DEADLINE_MS), "the stream stands still");
}

/* After so many more. */
static void stream_end(struct stream *stream, unsigned long nr_more)
{
	stream_await(stream, nr_more);
	atomic_store(&stream->ends, true);
	cr_assert_eq(pthread_join(stream->thread, NULL), 0);
}

/* Three groups; the policy of the second. */
#define CONFIGURATION(policy)                                                                      \
	"[defaults]\nslow-start = 0\n[group %s]\nnetns = %s\npolicy = least-conn\n"                \
	"[group %s]\nnetns = %s\npolicy = " policy "\n[group %s]\nnetns = %s\n"

/* A group with connections coming in. */
struct busy {
	struct scene scene;
	struct stream stream;
	struct steered steered;
	struct counts before;
};

static void busy_start(struct busy *busy, bool is_steered)
{
	if (is_steered) {
		await_steered(&busy->scene.servers.endpoint);
		steered_open(&busy->steered, &busy->scene.servers.endpoint);
		steered_count(&busy->steered, &busy->before);
	}
	stream_start(&busy->stream, &busy->scene.servers.endpoint);
	stream_await(&busy->stream, 20);
}

/* Expects that every run ended in one of two ways; the numbers of both. */
static void expect_only_selected_and_hash(const struct busy *busy, uint64_t *ret_selected,
					  uint64_t *ret_hash)
{
	struct counts now;

	steered_count(&busy->steered, &now);
	*ret_hash = now.outcomes.hash - busy->before.outcomes.hash;
	*ret_selected = busy->stream.nr_done - *ret_hash;
	expect_outcomes(&busy->steered, &busy->before,
			(struct outcomes){ .selected = *ret_selected, .hash = *ret_hash });
}

Test(config, a_reload_adds_changes_and_ends_groups_while_connections_come_in)
{
	struct config_file file CLEANUP(config_file_done) = {};
	struct said said CLEANUP(said_done) = {};
	struct busy same, changed, removed, added;
	uint64_t nr_selected, nr_hash;
	struct program daemon;

	scene_start(&same.scene, "--workers", "2");
	scene_start(&changed.scene, "--workers", "3");
	scene_start(&removed.scene, "--workers", "2");
	scene_start(&added.scene, "--workers", "2");
	config_file_new(&file);
	config_file_write(&file, CONFIGURATION("p2c"), same.scene.group, same.scene.netns,
			  changed.scene.group, same.scene.netns, removed.scene.group,
			  same.scene.netns);
	program_start(&daemon, NULL, (const char *const[]){ "run", "--config", file.path, NULL });
	busy_start(&same, true);
	busy_start(&changed, true);
	busy_start(&removed, true);
	busy_start(&added, false);
	expect_setting(&same.scene.servers.endpoint, "policy", "least-conn");
	expect_setting(&changed.scene.servers.endpoint, "policy", "p2c");
	expect_setting(&removed.scene.servers.endpoint, "policy", "least-loaded");
	expect_setting(&removed.scene.servers.endpoint, "slow-start", "0");

	config_file_write(&file, CONFIGURATION("hash"), same.scene.group, same.scene.netns,
			  changed.scene.group, same.scene.netns, added.scene.group,
			  same.scene.netns);
	kill(daemon.pid, SIGHUP);
	await_not_steered(&removed.scene.servers.endpoint);
	await_steered(&added.scene.servers.endpoint);
	stream_end(&same.stream, 20);
	stream_end(&changed.stream, 20);
	stream_end(&removed.stream, 20);
	stream_end(&added.stream, 20);

	expect_only_selected_and_hash(&same, &nr_selected, &nr_hash);
	cr_expect_eq(nr_hash, 0, "%lu", nr_hash);
	expect_only_selected_and_hash(&changed, &nr_selected, &nr_hash);
	cr_expect(nr_selected >= 20 && nr_hash >= 20, "%lu and %lu", nr_selected, nr_hash);
	daemon_stop(&daemon, &said);
	cr_expect(strstr(said.error, "policy is hash from now on, it was p2c"), "%s", said.error);
	cr_expect(strstr(said.error, "no longer asked for"), "%s", said.error);
	cr_expect_null(strstr(said.error, "came back"), "%s", said.error);
}

Test(config, a_bad_file_on_reload_changes_nothing_and_a_good_one_after_it_does)
{
	struct config_file file CLEANUP(config_file_done) = {};
	struct said said CLEANUP(said_done) = {};
	struct scene scene, again;
	struct program daemon;

	scene_start(&scene, "--workers", "2");
	config_file_new(&file);
	config_file_write(&file, "[group %s]\nnetns = %s\npolicy = p2c\n", scene.group,
			  scene.netns);
	program_start(&daemon, NULL, (const char *const[]){ "run", "--config", file.path, NULL });
	await_steered(&scene.servers.endpoint);
	config_file_write(&file, "[defaults]\npolicy = hash\nfoo = bar\n");
	kill(daemon.pid, SIGHUP);
	daemon_await_said(&daemon, ":3: [defaults] has no key \"foo\"");
	daemon_await_said(&daemon, "everything stays as it was configured before");
	cr_expect(group_is_steered(&scene.servers.endpoint));
	expect_setting(&scene.servers.endpoint, "policy", "p2c");
	/* It is looked after as before, too. */
	servers_stop(&scene.servers);
	scene_start(&again, "--workers", "2", "--port", scene.port + 1);
	await_steered(&again.servers.endpoint);
	expect_setting(&scene.servers.endpoint, "policy", "p2c");
	/* By hand: survives a reload that does not name it. */
	program_succeeds("policy", scene.group, "least-conn", "--netns", scene.netns);
	config_file_write(&file, "[group %s]\nnetns = %s\nslow-start = 7s\n", scene.group,
			  scene.netns);
	kill(daemon.pid, SIGHUP);
	daemon_await_said(&daemon, "slow-start is 7s from now on");
	expect_setting(&scene.servers.endpoint, "slow-start", "7s");
	expect_setting(&scene.servers.endpoint, "policy", "least-conn");
	daemon_stop(&daemon, &said);
}

Test(config, a_daemon_that_starts_again_brings_what_the_file_says_to_groups_steered_already)
{
	struct said first CLEANUP(said_done) = {}, second CLEANUP(said_done) = {};
	struct config_file file CLEANUP(config_file_done) = {};
	struct program daemon;
	struct scene scene;

	scene_start(&scene, "--workers", "2");
	scene_attach(&scene);
	config_file_new(&file);
	config_file_write(&file, "[group %s]\nnetns = %s\npolicy = round-robin\n", scene.group,
			  scene.netns);
	program_start(&daemon, NULL, (const char *const[]){ "run", "--config", file.path, NULL });
	daemon_await_said(&daemon, "policy is round-robin from now on, it was least-loaded");
	daemon_stop(&daemon, &first);
	/* The command line has the last word. */
	program_start(&daemon, NULL,
		      (const char *const[]){ "run", "--config", file.path, "--policy", "p2c",
					     "--detach-on-exit", NULL });
	daemon_await_said(&daemon, "policy is p2c from now on, it was round-robin");
	daemon_stop(&daemon, &second);
	expect_untouched(&scene.servers.endpoint, "the end of run");
}

/* Where systemd would listen. */
struct notified {
	int fd; /* owned */
	char address[64];
};

static void notified_new(struct notified *notified)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(notified->address, sizeof(notified->address), "@socksteer-test-%d", getpid());
	memcpy(&address.sun_path[1], notified->address + 1, strlen(notified->address) - 1);
	notified->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(notified->fd, (struct sockaddr *)&address,
			  (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
				      strlen(notified->address))),
		     0, "%s", strerror(errno));
}

static int prepare_notified(void *argument)
{
	const struct notified *notified = argument;

	return setenv("NOTIFY_SOCKET", notified->address, 1) ? -errno : 0;
}

/* The next message that begins like this; others before it are of no interest. */
static void await_notified(const struct notified *notified, const char *begin, char ret_text[256])
{
	const struct timeval deadline = { .tv_sec = DEADLINE_MS / 1000 };
	ssize_t length;

	setsockopt(notified->fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline));
	do {
		length = recv(notified->fd, ret_text, 255, 0);
		cr_assert_geq(length, 0, "never notified of %s: %s", begin, strerror(errno));
		ret_text[length] = '\0';
	} while (strncmp(ret_text, begin, strlen(begin)));
}

Test(config, a_reload_is_announced_with_its_time_and_its_end)
{
	struct said said CLEANUP(said_done) = {};
	struct program_setup setup = { .prepare = prepare_notified };
	struct notified notified;
	struct program daemon;
	struct scene scene;
	char text[256];

	scene_start(&scene, "--workers", "2");
	notified_new(&notified);
	setup.argument = &notified;
	program_start(&daemon, &setup,
		      (const char *const[]){ "run", scene.group, "--netns", scene.netns, NULL });
	await_notified(&notified, "READY=1", text);
	kill(daemon.pid, SIGHUP);
	await_notified(&notified, "RELOADING=1\nMONOTONIC_USEC=", text);
	await_notified(&notified, "READY=1", text);
	daemon_stop(&daemon, &said);
	await_notified(&notified, "STOPPING=1", text);
	close(notified.fd);
}

/* As a user who has no rights at all. */
static int drop_rights(void *argument)
{
	(void)argument;
	return setgid(65534) || setuid(65534) ? -errno : 0;
}

Test(config, check_needs_no_rights_prints_the_settings_and_exits)
{
	const struct program_setup anybody = { .prepare = drop_rights };
	struct said good CLEANUP(said_done) = {}, bad CLEANUP(said_done) = {};
	char path[] = "/tmp/socksteer-test-XXXXXX";
	int fd CLEANUP(cleanup_fd) = mkstemp(path);
	static const char text[] = "[defaults]\nslow-start = 2s\n"
				   "[group 127.0.0.1:80]\npolicy = p2c\n"
				   "[all]\naddress = [::1]:*\n";

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
	cr_assert_eq(fchmod(fd, 0644), 0);
	program_run_in(&good, &anybody, "run", "--check", "--config", path, ":81", "--all");
	cr_assert_eq(ftruncate(fd, 30), 0);
	program_run_in(&bad, &anybody, "run", "--check", "--config", path);
	unlink(path);
	cr_expect_eq(good.code, EXIT_DONE, "%s", good.error);
	cr_expect_str_eq(
		good.output,
		":81: policy least-loaded, slow-start 2s, busy-penalty 0.50, stuck-after 100ms, rescue off\n"
		"127.0.0.1:80: policy p2c, slow-start 2s, busy-penalty 0.50, stuck-after 100ms, rescue off\n"
		"all: policy least-loaded, slow-start 2s, busy-penalty 0.50, stuck-after 100ms, rescue off\n"
		"all address=[::1]:*: policy least-loaded, slow-start 2s, busy-penalty 0.50, stuck-after 100ms, rescue off\n");
	expect_refused(&bad, "a section cut short", EXIT_USAGE, ":3: \"[gr\" does not end with");
}

/* The daemon of root has no CAP_DAC_OVERRIDE, and so must not the check. */
Test(config, check_refuses_a_file_that_run_may_not_read_in_the_same_words)
{
	struct said check CLEANUP(said_done) = {}, run CLEANUP(said_done) = {};
	char path[] = "/tmp/socksteer-test-XXXXXX";
	int fd CLEANUP(cleanup_fd) = mkstemp(path);
	size_t length;

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, "[defaults]\n", 11), 11);
	cr_assert_eq(fchown(fd, 65534, 65534), 0);
	program_run(&check, "run", "--check", "--config", path);
	program_run(&run, "run", "--config", path);
	unlink(path);
	expect_refused(&check, "run --check", EXIT_USAGE, "Permission denied");
	cr_expect_eq(run.code, EXIT_USAGE, "%s", run.error);
	/* Said after the line about what the daemon may still do. */
	length = strlen(check.error);
	cr_assert_geq(strlen(run.error), length, "%s", run.error);
	cr_expect_str_eq(run.error + strlen(run.error) - length, check.error);
}
