/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a person looks at while it happens: status --watch, top, and events, as real programs.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "kernel/event_reader.h"
#include "support/clients.h"
#include "support/plain_group.h"
#include "support/program.h"
#include "support/sandbox.h"
#include "support/scene.h"
#include "support/steered.h"
#include "support/terminal.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

TestSuite(views, .init = scene_enter, .timeout = TEST_SECONDS);

/* What a running program has said so far on standard output, for the caller to free. */
static char *said_so_far(const struct program *program)
{
	struct stat info;
	char *text;

	cr_assert_eq(fstat(program->output, &info), 0);
	text = calloc(1, (size_t)info.st_size + 1);
	cr_assert_not_null(text);
	cr_assert_eq(pread(program->output, text, (size_t)info.st_size, 0), info.st_size);
	return text;
}

static size_t count_words(const char *text, const char *words)
{
	size_t count = 0;

	for (; (text = strstr(text, words)); text += strlen(words))
		count++;
	return count;
}

struct awaited_words {
	const struct program *program;
	const char *words;
	size_t nr_times;
};

static bool is_said(void *argument)
{
	const struct awaited_words *awaited = argument;
	CLEANUP(cleanup_free) char *text = said_so_far(awaited->program);

	return count_words(text, awaited->words) >= awaited->nr_times;
}

static void await_words(const struct program *program, const char *words, size_t nr_times)
{
	struct awaited_words awaited = { program, words, nr_times };

	cr_assert(wait_until(is_said, &awaited, DEADLINE_MS), "never says \"%s\" %zu times: \"%s\"",
		  words, nr_times, said_so_far(program));
}

#define start(program, ...) program_start(program, NULL, (const char *const[]){ __VA_ARGS__, NULL })

/* Ends it as Ctrl-C does, and expects that it ends well. */
static void interrupt(struct program *program, struct said *ret_said)
{
	kill(program->pid, SIGINT);
	program_wait(program, ret_said);
	cr_expect_eq(ret_said->code, EXIT_DONE, "%d: %s", ret_said->code, ret_said->error);
	cr_expect_str_empty(ret_said->error);
}

Test(views, status_watch_prints_frames_until_it_is_interrupted)
{
	struct said said CLEANUP(said_done) = {};
	struct program program;
	struct scene scene;
	size_t nr_frames;

	scene_start(&scene, "--workers", "2");
	scene_attach(&scene);
	start(&program, "status", scene.group, "--netns", scene.netns, "--watch=20ms");
	await_words(&program, "policy least-loaded, 2 listeners, steered\n", 3);
	await_words(&program, "\n\n127.0.0.1:", 2);
	program_succeeds("policy", scene.group, "p2c", "--netns", scene.netns);
	await_words(&program, "policy p2c", 1);
	program_succeeds("detach", scene.group, "--netns", scene.netns);
	await_words(&program, "is not steered any more\n", 1);
	interrupt(&program, &said);
	/* Not by its table: in the middle of a detach there is a frame without one. */
	nr_frames = count_words(said.output, "outcomes:") + count_words(said.output, "any more\n");
	cr_expect_eq(count_words(said.output, "\n\n"), nr_frames - 1, "%s", said.output);
	cr_expect(!strchr(said.output, '\x1b'), "no terminal is told to clear itself");
}

Test(views, status_watch_with_json_is_one_document_per_line)
{
	struct said said CLEANUP(said_done) = {};
	char *line, *rest, *end;
	struct program program;
	size_t nr_lines = 0;
	struct scene scene;

	scene_start(&scene, "--workers", "2");
	scene_attach(&scene);
	start(&program, "status", "--json", "--watch=20ms");
	await_words(&program, "\n", 3);
	interrupt(&program, &said);
	for (rest = said.output; (line = strsep(&rest, "\n")) && *line; nr_lines++) {
		json_t *document = json_loads(line, JSON_REJECT_DUPLICATES, NULL);

		cr_assert_not_null(document, "%s", line);
		cr_expect_eq(json_array_size(json_object_get(document, "groups")), 1);
		json_decref(document);
	}
	end = rest;
	cr_expect_null(end);
	cr_expect_geq(nr_lines, 3);
}

Test(views, status_watch_of_what_is_not_steered_fails_at_once)
{
	struct said said CLEANUP(said_done) = {};
	struct scene scene;

	scene_start(&scene, "--workers", "2");
	program_run(&said, "status", scene.group, "--netns", scene.netns, "--watch");
	expect_refused(&said, "status --watch", EXIT_NOTHING, "is not steered");
}

/* The first event of this kind, and of this listener unless cookie is 0; the caller owns it. */
static json_t *find_event(const struct program *program, const char *kind, uint64_t cookie)
{
	CLEANUP(cleanup_free) char *text = said_so_far(program);
	char *rest = text, *line;

	while ((line = strsep(&rest, "\n")) && *line && rest) {
		json_t *event = json_loads(line, JSON_REJECT_DUPLICATES, NULL);

		cr_assert_not_null(event, "%s", line);
		if (!strcmp(json_string_value(json_object_get(event, "event")), kind) &&
		    (!cookie ||
		     (uint64_t)json_integer_value(json_object_get(event, "cookie")) == cookie))
			return event;
		json_decref(event);
	}
	return NULL;
}

struct awaited_event {
	const struct program *program;
	const char *kind;
	uint64_t cookie;
	json_t *found;
};

static bool is_reported(void *argument)
{
	struct awaited_event *awaited = argument;

	awaited->found = find_event(awaited->program, awaited->kind, awaited->cookie);
	return awaited->found != NULL;
}

static json_t *await_event(const struct program *program, const char *kind, uint64_t cookie)
{
	struct awaited_event awaited = { program, kind, cookie, NULL };

	cr_assert(wait_until(is_reported, &awaited, DEADLINE_MS), "no %s: %s", kind,
		  said_so_far(program));
	return awaited.found;
}

static uint64_t number_of(const json_t *event, const char *key)
{
	cr_assert(json_is_integer(json_object_get(event, key)), "no number: %s", key);
	return (uint64_t)json_integer_value(json_object_get(event, key));
}

/* Expects the text of a key, and gives the event back. */
static void expect_text(json_t *event, const char *key, const char *expected)
{
	const char *text = json_string_value(json_object_get(event, key));

	cr_expect(text && !strcmp(text, expected), "%s: \"%s\"", key, text ? text : "");
}

/* Expects that a listener of this test has this event at this time. */
static void expect_listener(json_t *event, const struct scene *scene, uint64_t earliest_ns,
			    uint64_t latest_ns)
{
	uint64_t time_ns = number_of(event, "monotonic_ns");
	struct network network;

	network_current(&network);
	expect_text(event, "group", scene->group);
	cr_expect_eq(number_of(event, "netns"), network.inode);
	cr_expect(earliest_ns <= time_ns && time_ns <= latest_ns,
		  "%" PRIu64 " is not between %" PRIu64 " and %" PRIu64, time_ns, earliest_ns,
		  latest_ns);
	network_done(&network);
}

/* A group of this process beside the workers of a scene: the test knows its cookies. */
static void join(struct plain_group *group, const struct scene *scene)
{
	plain_group_init(group, "127.0.0.1", scene->port + 1);
	plain_group_add_watched(group, 1, PLAIN_BACKLOG);
}

Test(views, events_report_a_join_a_slot_and_a_leave_of_a_listener)
{
	uint64_t started_ns, joined_ns, leaving_ns, cookie;
	struct said said CLEANUP(said_done) = {};
	json_t *joined, *placed, *left;
	struct plain_group group;
	struct program program;
	struct scene scene;

	scene_start(&scene, "--workers", "2");
	scene_attach(&scene);
	start(&program, "events", "--json");
	json_decref(await_event(&program, "watching", 0));
	started_ns = clock_now_ns();
	join(&group, &scene);
	joined_ns = clock_now_ns();
	cookie = socket_cookie(group.listeners[0]);
	joined = await_event(&program, "joined", cookie);
	expect_listener(joined, &scene, started_ns, joined_ns);
	cr_expect_eq(number_of(joined, "pid"), getpid());
	cr_expect(json_is_null(json_object_get(joined, "slot")));
	scene_attach(&scene);
	placed = await_event(&program, "placed", cookie);
	cr_expect_eq(number_of(placed, "slot"), 2);
	leaving_ns = clock_now_ns();
	plain_group_close(&group, 0);
	left = await_event(&program, "left", cookie);
	expect_listener(left, &scene, leaving_ns, clock_now_ns());
	cr_expect_eq(number_of(left, "slot"), 2);
	cr_expect_eq(number_of(left, "pid"), getpid());
	interrupt(&program, &said);
	json_decref(joined);
	json_decref(placed);
	json_decref(left);
	plain_group_done(&group);
}

/* Listeners of this network that left, as the pinned ring buffer has it. */
struct leaves {
	uint32_t netns;
	size_t nr;
};

static void count_leave(const struct event *event, void *argument)
{
	struct leaves *leaves = argument;

	leaves->nr += event->kind == EVENT_LISTENER_LEFT && event->netns == leaves->netns;
}

/* In the kernel a connection is born as a copy of its listener, in the state LISTEN. */
Test(views, connections_are_no_listeners_that_leave)
{
	struct leaves leaves = { .netns = (uint32_t)-1 };
	struct said said CLEANUP(said_done) = {};
	struct event_reader *reader;
	struct plain_group group;
	struct program program;
	struct network network;
	struct steered steered;
	struct scene scene;
	uint64_t cookie;

	scene_start(&scene, "--workers", "2");
	steer(&steered, &scene.servers.endpoint, POLICY_LEAST_LOADED);
	cr_assert_eq(event_reader_new(steered.tables.events, count_leave, &leaves, &reader), 0);
	cr_assert_geq(event_reader_drain(reader), 0);
	network_current(&network);
	leaves.netns = network.inode;
	start(&program, "events", "--json");
	json_decref(await_event(&program, "watching", 0));
	clients_visit(&scene.servers.endpoint, 50, 2, END_WORKER_FIRST);
	join(&group, &scene);
	cookie = socket_cookie(group.listeners[0]);
	plain_group_close(&group, 0);
	json_decref(await_event(&program, "left", cookie));
	interrupt(&program, &said);
	cr_expect_eq(count_words(said.output, scene.group), 2, "%s", said.output);
	cr_assert_geq(event_reader_drain(reader), 0);
	cr_expect_eq(leaves.nr, 1, "the daemon would be told of %zu", leaves.nr);
	event_reader_free(reader);
	network_done(&network);
	steered_detach(&steered);
	plain_group_done(&group);
}

Test(views, events_report_groups_and_settings_and_outlive_the_pins)
{
	struct said said CLEANUP(said_done) = {};
	struct program program;
	json_t *event;
	struct scene scene;

	scene_start(&scene, "--workers", "3");
	start(&program, "events", "--json");
	event = await_event(&program, "watching", 0);
	cr_expect_eq(number_of(event, "count"), 0);
	json_decref(event);
	scene_attach(&scene);
	event = await_event(&program, "steered", 0);
	expect_text(event, "to", "least-loaded");
	expect_text(event, "group", scene.group);
	json_decref(event);
	program_succeeds("policy", scene.group, "round-robin", "--netns", scene.netns);
	event = await_event(&program, "setting", 0);
	expect_text(event, "setting", "policy");
	expect_text(event, "from", "least-loaded");
	expect_text(event, "to", "round-robin");
	json_decref(event);
	program_succeeds("detach", "--all");
	json_decref(await_event(&program, "detached", 0));
	json_decref(await_event(&program, "idle", 0));
	scene_attach(&scene);
	await_words(&program, "\"event\":\"steered\"", 2);
	await_words(&program, "\"event\":\"placed\"", 6);
	interrupt(&program, &said);
	cr_expect_eq(count_words(said.output, "replaced"), 0, "%s", said.output);
}

Test(views, events_end_after_the_time_that_was_given)
{
	struct said said CLEANUP(said_done) = {};
	uint64_t begin_ns = clock_now_ns();

	program_run(&said, "events", "--for", "300ms");
	expect_done(&said, "events --for", " watching; 0 groups are steered\n");
	cr_expect_geq(clock_now_ns() - begin_ns, 300000000);
}

Test(views, events_can_run_beside_the_daemon_and_each_other)
{
	struct said said CLEANUP(said_done) = {}, second_said CLEANUP(said_done) = {};
	struct said daemon_said CLEANUP(said_done) = {};
	struct program first, second, daemon;
	struct plain_group group;
	struct scene scene;
	uint64_t cookie;
	json_t *event;

	scene_start(&scene, "--workers", "2");
	start(&first, "events", "--json");
	start(&second, "events", "--json");
	json_decref(await_event(&first, "watching", 0));
	json_decref(await_event(&second, "watching", 0));
	start(&daemon, "run", scene.port, "--netns", scene.netns);
	json_decref(await_event(&first, "steered", 0));
	join(&group, &scene);
	cookie = socket_cookie(group.listeners[0]);
	json_decref(await_event(&first, "joined", cookie));
	json_decref(await_event(&second, "joined", cookie));
	/* The daemon has heard of it as well. */
	event = await_event(&second, "placed", cookie);
	cr_expect_eq(number_of(event, "slot"), 2);
	json_decref(event);
	interrupt(&first, &said);
	interrupt(&second, &second_said);
	kill(daemon.pid, SIGTERM);
	program_wait(&daemon, &daemon_said);
	cr_expect_eq(daemon_said.code, EXIT_DONE);
	plain_group_done(&group);
}

/* Skips one line, and expects that it begins with these words. */
static char *expect_line(char **rest, const char *words)
{
	char *line = strsep(rest, "\n");

	cr_assert_not_null(line, "\"%s\" is missing", words);
	cr_expect_eq(strncmp(line, words, strlen(words)), 0, "\"%s\" is not \"%s\"", line, words);
	return line;
}

Test(views, top_once_prints_one_frame_as_text)
{
	struct said said CLEANUP(said_done) = {};
	struct clients clients = {};
	char group[256], *rest;
	struct scene scene;
	size_t i;

	scene_start(&scene, "--workers", "3");
	scene_attach(&scene);
	clients_hold(&clients, &scene.servers.endpoint, 3);
	program_run(&said, "top", scene.group, "--netns", scene.netns, "--once", "--interval",
		    "50ms", "--width", "80");
	expect_done(&said, "top --once", "RATE\n");
	rest = said.output;
	expect_line(&rest, "SLOT     PID COMMAND      STATE      WEIGHT   HELD          QUEUED    "
			   "      RATE");
	snprintf(group, sizeof(group), "%s: least-loaded, 3 listeners, netns %s", scene.group,
		 scene.netns);
	cr_expect_str_eq(expect_line(&rest, group), group);
	expect_line(&rest, "per second: selected 0.0");
	for (i = 0; i < 3; i++) {
		char *line = expect_line(&rest, "   "), *loads = strstr(line, "  1      1 ");
		unsigned int slot, pid;

		cr_assert_eq(sscanf(line, "%u %u", &slot, &pid), 2);
		cr_expect_eq(slot, i);
		cr_expect_lt(servers_find(&scene.servers, (pid_t)pid), 3);
		cr_assert_not_null(loads, "weight and held: \"%s\"", line);
		cr_expect_str_eq(loads, "  1      1 #####     0/511           0.0");
	}
	cr_expect_str_eq(rest, "");
	clients_close(&clients, EVERY_WORKER);
}

Test(views, top_without_a_terminal_says_what_to_do)
{
	struct said said CLEANUP(said_done) = {}, dumb_said CLEANUP(said_done) = {};
	struct said none_said CLEANUP(said_done) = {}, group_said CLEANUP(said_done) = {};
	struct terminal dumb CLEANUP(terminal_done), none CLEANUP(terminal_done);

	program_run(&said, "top");
	expect_refused(&said, "no terminal", EXIT_FAILED, "--once");
	terminal_start(&dumb, "dumb", 24, 80, "top");
	terminal_wait(&dumb, &dumb_said);
	expect_refused(&dumb_said, "dumb", EXIT_FAILED, "--once");
	cr_expect_str_empty(dumb.drawn);
	terminal_start(&none, NULL, 24, 80, "top");
	terminal_wait(&none, &none_said);
	expect_refused(&none_said, "no TERM", EXIT_FAILED, "--once");
	program_run(&group_said, "top", "127.0.0.1:1", "--once");
	expect_refused(&group_said, "no such group", EXIT_NOTHING, "is not steered");
}

/* The number of a row's worker, somewhere in the list. */
static void await_worker(struct terminal *terminal, const struct scene *scene)
{
	char pid[NUMBER_BYTES];

	number_format((uint64_t)scene->servers.pids[0], pid);
	terminal_await(terminal, pid);
}

Test(views, status_watch_draws_over_the_last_frame_on_a_terminal)
{
	struct terminal terminal CLEANUP(terminal_done);
	struct said said CLEANUP(said_done) = {};
	int i;

	terminal_start(&terminal, "xterm", 24, 80, "status", "--watch=20ms");
	for (i = 0; i < 3; i++)
		terminal_await(&terminal, "\x1b[H\x1b[JNo group is steered.");
	/* Ctrl-C, as the terminal knows it. */
	terminal_press(&terminal, "\x03");
	terminal_wait(&terminal, &said);
	cr_expect_eq(said.code, EXIT_DONE, "%d: %s", said.code, said.error);
}

Test(views, top_draws_obeys_keys_follows_the_window_and_gives_the_terminal_back)
{
	struct terminal terminal CLEANUP(terminal_done);
	struct said said CLEANUP(said_done) = {};
	struct scene scene;

	scene_start(&scene, "--workers", "4");
	scene_attach(&scene);
	terminal_start(&terminal, "xterm", 24, 80, "top", "--interval", "50ms");
	terminal_await(&terminal, "by slot");
	terminal_await(&terminal, "QUEUED");
	terminal_await(&terminal, scene.group);
	await_worker(&terminal, &scene);
	terminal_press(&terminal, "s");
	terminal_await(&terminal, "pid");
	terminal_resize(&terminal, 10, 40);
	terminal_await(&terminal, "by pid");
	await_worker(&terminal, &scene);
	terminal_press(&terminal, "?");
	terminal_resize(&terminal, 30, 120);
	terminal_await(&terminal, "move through the list");
	terminal_press(&terminal, "?rrp\x1b[6~\x1b[5~");
	terminal_resize(&terminal, 3, 20);
	terminal_await(&terminal, "PAUSED");
	terminal_resize(&terminal, 1, 1);
	terminal_press(&terminal, "p");
	terminal_resize(&terminal, 24, 80);
	await_worker(&terminal, &scene);
	program_succeeds("detach", scene.group, "--netns", scene.netns);
	terminal_await(&terminal, "No group is steered.");
	terminal_press(&terminal, "q");
	terminal_wait(&terminal, &said);
	cr_expect_eq(said.code, EXIT_DONE, "%d: %s", said.code, said.error);
	cr_expect_str_empty(said.error);
	expect_terminal_restored(&terminal, "q");
}

Test(views, top_gives_the_terminal_back_when_a_signal_ends_it)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	size_t i;

	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		struct terminal terminal CLEANUP(terminal_done);
		struct said said CLEANUP(said_done) = {};

		terminal_start(&terminal, "xterm", 24, 80, "top");
		terminal_await(&terminal, "No group is steered.");
		kill(terminal.program.pid, signals[i]);
		terminal_wait(&terminal, &said);
		cr_expect_eq(said.code, EXIT_DONE, "%s: %d", strsignal(signals[i]), said.code);
		expect_terminal_restored(&terminal, strsignal(signals[i]));
	}
}
