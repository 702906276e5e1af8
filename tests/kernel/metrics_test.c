/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Metrics of groups that are really steered: the command, and the endpoint of the daemon, to which
 * everybody on the machine may say anything.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "support/exposition.h"
#include "support/clients.h"
#include "support/plain_group.h"
#include "support/program.h"
#include "support/sandbox.h"
#include "support/scene.h"
#include "support/steered.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <linux/filter.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

TestSuite(metrics, .init = scene_enter, .timeout = TEST_SECONDS);

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Larger than every answer of these tests. */
#define ANSWER_BYTES 65536

/* As many as are served at once, and some more. */
#define NR_CROWD 24

/* A daemon with an endpoint. */
struct served {
	struct program daemon;
	struct endpoint endpoint;
};

static bool logs_endpoint(void *argument)
{
	struct served *served = argument;
	char log[4096], *address, *port;
	ssize_t size = pread(served->daemon.error, log, sizeof(log) - 1, 0);

	if (size < 0)
		return false;
	log[size] = '\0';
	address = strstr(log, "metrics on http://");
	if (!address || !strstr(address, "/metrics\n"))
		return false;
	address += strlen("metrics on http://");
	*strstr(address, "/metrics\n") = '\0';
	port = strrchr(address, ':');
	*port = '\0';
	if (address[0] == '[') {
		address++;
		port[-1] = '\0';
	}
	return !endpoint_parse(address, port + 1, &served->endpoint);
}

static void serve_start(struct served *served, const struct scene *scene, const char *address)
{
	program_start(&served->daemon, NULL,
		      (const char *const[]){ "run", scene->port, "--netns", scene->netns,
					     "--metrics", address, NULL });
	cr_assert(wait_until(logs_endpoint, served, DEADLINE_MS), "no endpoint is logged");
}

/* Ends the daemon as systemd does, and expects that it ends well. */
static void serve_stop(struct served *served)
{
	struct said said CLEANUP(said_done) = {};

	kill(served->daemon.pid, SIGTERM);
	program_wait(&served->daemon, &said);
	cr_expect_eq(said.code, EXIT_DONE, "%s", said.error);
}

static int open_client(const struct served *served)
{
	const struct timeval deadline = { .tv_sec = DEADLINE_MS / 1000 };
	int fd = socket(served->endpoint.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_geq(fd, 0);
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline)), 0);
	cr_assert_eq(connect(fd, (const struct sockaddr *)&served->endpoint.address,
			     served->endpoint.nr_address_bytes),
		     0, "connect: %s", strerror(errno));
	return fd;
}

/* Reads to the end of the connection, which the daemon closes, with or without a reset. */
static void read_answer(int fd, char ret_answer[ANSWER_BYTES])
{
	size_t used = 0;
	ssize_t nr;

	while ((nr = recv(fd, ret_answer + used, ANSWER_BYTES - 1 - used, 0)) > 0)
		used += (size_t)nr;
	cr_assert(!nr || errno == ECONNRESET, "no end of the answer: %s", strerror(errno));
	ret_answer[used] = '\0';
}

/* Says these bytes to the endpoint, and reads what it answers. */
static void say(const struct served *served, const char *request, size_t size,
		char ret_answer[ANSWER_BYTES])
{
	int fd CLEANUP(cleanup_fd) = open_client(served);

	/* It may hang up while it is still being talked to. */
	send(fd, request, size, MSG_NOSIGNAL);
	read_answer(fd, ret_answer);
}

/* The whole answer to a GET that asks for the end of the connection. */
static void get(const struct served *served, const char *path, char ret_answer[ANSWER_BYTES])
{
	char request[256];
	int size = snprintf(request, sizeof(request),
			    "GET %s HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n", path);

	say(served, request, (size_t)size, ret_answer);
}

/* The body of an answer with this code. */
static const char *body_of(const char *answer, const char *code)
{
	const char *body = strstr(answer, "\r\n\r\n");
	char status[32];

	snprintf(status, sizeof(status), "HTTP/1.1 %s ", code);
	cr_assert_eq(strncmp(answer, status, strlen(status)), 0, "not %s: %s", code, answer);
	cr_assert_not_null(body);
	return body + 4;
}

static json_t *read_status(void)
{
	struct said said CLEANUP(said_done) = {};
	json_t *status;

	program_run(&said, "status", "--json");
	cr_assert_eq(said.code, EXIT_DONE, "%s", said.error);
	status = json_loads(said.output, 0, NULL);
	cr_assert_not_null(status, "%s", said.output);
	return status;
}

static void expect_number(const char *text, const char *name, const char *labels,
			  const json_t *object, const char *key)
{
	const json_t *number = json_object_get(object, key);
	char series[512];

	cr_assert(json_is_integer(number), "%s", key);
	snprintf(series, sizeof(series), "socksteer_%s{%s}", name, labels);
	cr_expect_eq(exposition_value(text, series), (uint64_t)json_integer_value(number), "%s",
		     series);
}

static const char *const gauges[] = {
	"held", "worker_held", "half_open", "queued", "backlog", "weight",
};

static const char *const counters[] = {
#define LOAD_COUNTER(name, text) #name,
#include "socksteer/counters.def"
};

static const char *const outcomes[] = {
#define OUTCOME(NAME, name, text) #name,
#include "socksteer/counters.def"
};

static void expect_listener(const char *text, const char *group_labels, const json_t *listener)
{
	char labels[256], name[64], info[512];
	size_t i;

	snprintf(labels, sizeof(labels), "%s,slot=\"%d\"", group_labels,
		 (int)json_integer_value(json_object_get(listener, "slot")));
	for (i = 0; i < COUNT(gauges); i++) {
		snprintf(name, sizeof(name), "listener_%s", gauges[i]);
		expect_number(text, name, labels, listener, gauges[i]);
	}
	for (i = 0; i < COUNT(counters); i++) {
		snprintf(name, sizeof(name), "listener_%s_total", counters[i]);
		expect_number(text, name, labels, listener, counters[i]);
	}
	snprintf(info, sizeof(info), "socksteer_listener_info{%s,pid=\"%d\",comm=\"%s\"}", labels,
		 (int)json_integer_value(json_object_get(listener, "pid")),
		 json_string_value(json_object_get(listener, "comm")));
	cr_expect_eq(exposition_value(text, info), 1);
}

/* Expects that the text says of the one group that is steered what its status says. */
static void expect_like_status(const char *text)
{
	json_t *status = read_status(), *listener;
	json_t *group = json_array_get(json_object_get(status, "groups"), 0);
	char group_labels[128], labels[256];
	size_t i;

	cr_assert_not_null(group);
	snprintf(group_labels, sizeof(group_labels), "group=\"%s\",netns=\"%lld\"",
		 json_string_value(json_object_get(group, "name")),
		 json_integer_value(json_object_get(group, "netns")));
	expect_number(text, "group_listeners_missing", group_labels, group, "missing");
	for (i = 0; i < COUNT(outcomes); i++) {
		snprintf(labels, sizeof(labels), "%s,outcome=\"%s\"", group_labels, outcomes[i]);
		expect_number(text, "runs_total", labels, json_object_get(group, "outcomes"),
			      outcomes[i]);
	}
	json_array_foreach(json_object_get(group, "listeners"), i, listener)
		expect_listener(text, group_labels, listener);
	json_decref(status);
}

/* What a worker does at a moment may differ between two looks, and the daemon audits meanwhile. */
static void drop_states(char *text)
{
	char *line = text;

	while (*line) {
		char *next = strchr(line, '\n') + 1;

		if (strncmp(line, "socksteer_listener_state{", 25) != 0 &&
		    strncmp(line, "socksteer_audit_", 16) != 0)
			line = next;
		else
			memmove(line, next, strlen(next) + 1);
	}
}

/* The group of the scene, with so many listeners. */
static bool is_steered(void *argument)
{
	const struct scene *scene = argument;
	struct status status CLEANUP(status_done) = {};
	char text[ENDPOINT_TEXT_BYTES];
	struct failure failure = {};
	struct group_spec spec;

	spec_of_endpoint(&scene->servers.endpoint, text, &spec);
	return !status_read(&spec, &status, &failure) && status.nr_groups == 1 &&
	       status.groups[0].steered &&
	       status.groups[0].nr_listeners == scene->servers.nr_workers;
}

static void scene_serve(struct scene *scene, struct served *served, const char *address)
{
	scene_start(scene, "--workers", "3");
	serve_start(served, scene, address);
	cr_assert(wait_until(is_steered, scene, DEADLINE_MS), "never steered");
}

Test(metrics, the_endpoint_the_command_and_status_say_the_same)
{
	struct said said CLEANUP(said_done) = {};
	struct clients clients CLEANUP(clients_done) = {};
	static char answer[ANSWER_BYTES];
	struct served served;
	struct scene scene;
	char *text;

	scene_serve(&scene, &served, "127.0.0.1:0");
	clients_hold(&clients, &scene.servers.endpoint, 7);
	clients_visit(&scene.servers.endpoint, 12, 1, END_WORKER_FIRST);
	get(&served, "/metrics", answer);
	cr_expect(strstr(answer, "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
		  "%s", answer);
	text = strstr(answer, "\r\n\r\n") + 4;
	expect_exposition(text);
	expect_like_status(text);
	program_run(&said, "metrics");
	expect_done(&said, "metrics", "_total");
	expect_exposition(said.output);
	drop_states(text);
	drop_states(said.output);
	cr_expect_str_eq(text, said.output);
	serve_stop(&served);
}

Test(metrics, the_endpoint_serves_ipv6_and_says_how_many_groups_are_steered)
{
	static char answer[ANSWER_BYTES];
	struct served served;
	struct scene scene;

	scene_serve(&scene, &served, "[::1]:0");
	get(&served, "/healthz", answer);
	cr_expect_str_eq(body_of(answer, "200"), "ok\n1 of 1 groups steered\n");
	get(&served, "/metrics", answer);
	expect_exposition(body_of(answer, "200"));
	serve_stop(&served);
}

/* What somebody says to the endpoint, and how the answer begins; "" for none at all. */
struct request_case {
	const char *name;
	const char *request;
	const char *answer;
	const char *words; /* that are in the answer as well */
};

#define END "Host: test\r\nConnection: close\r\n\r\n"

static const struct request_case request_cases[] = {
	{ "an unknown path", "GET /x HTTP/1.1\r\n" END, "HTTP/1.1 404 ", "there is /metrics" },
	{ "the root", "GET / HTTP/1.1\r\n" END, "HTTP/1.1 404 ", "" },
	{ "a path below", "GET /metrics/x HTTP/1.1\r\n" END, "HTTP/1.1 404 ", "" },
	{ "a query", "GET /metrics?a=b HTTP/1.1\r\n" END, "HTTP/1.1 200 ", "build_info" },
	{ "HTTP/1.0", "GET /healthz HTTP/1.0\r\n\r\n", "HTTP/1.", "ok\n" },
	{ "HEAD", "HEAD /healthz HTTP/1.1\r\n" END, "HTTP/1.1 200 ", "Content-Length: " },
	{ "POST", "POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n" END "hello", "HTTP/1.1 405 ",
	  "Allow: GET, HEAD\r\n" },
	{ "POST without its body", "POST /metrics HTTP/1.1\r\nContent-Length: 1000000\r\n" END,
	  "HTTP/1.1 405 ", "" },
	{ "PUT in chunks",
	  "PUT /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" END "5\r\nhello\r\n",
	  "HTTP/1.1 405 ", "" },
	{ "DELETE", "DELETE /metrics HTTP/1.1\r\n" END, "HTTP/1.1 405 ", "" },
	{ "GET with a body", "GET /metrics HTTP/1.1\r\nContent-Length: 5\r\n" END "hello", "", "" },
	{ "garbage", "\x16\x03\x01 garbage\r\n\r\n", "HTTP/1.", " 400 " },
	{ "a header that is none", "GET /metrics HTTP/1.1\r\nnothing\r\n\r\n", "HTTP/1.1 400 ",
	  "" },
};

static void expect_answer(const struct served *served, const struct request_case *request)
{
	static char answer[ANSWER_BYTES];

	say(served, request->request, strlen(request->request), answer);
	cr_expect_eq(strncmp(answer, request->answer, strlen(request->answer)), 0, "%s: %s",
		     request->name, answer);
	cr_expect(!answer[0] == !request->answer[0], "%s: %s", request->name, answer);
	cr_expect(strstr(answer, request->words), "%s: %s", request->name, answer);
}

/* A request with so much in its head that nothing that serves it should keep it. */
static void expect_long_request_is_refused(const struct served *served)
{
	static char request[1 << 20], answer[ANSWER_BYTES];
	int size = snprintf(request, sizeof(request), "GET /metrics HTTP/1.1\r\nX: ");

	memset(request + size, 'x', sizeof(request) - (size_t)size);
	say(served, request, sizeof(request), answer);
	cr_expect(!answer[0] || strstr(answer, " 431 ") || strstr(answer, " 413 "), "%s", answer);
}

static void expect_alive(const struct served *served)
{
	static char answer[ANSWER_BYTES];

	get(served, "/healthz", answer);
	cr_expect_str_eq(body_of(answer, "200"), "ok\n1 of 1 groups steered\n");
}

static size_t count_descriptors(pid_t pid, const char *kind)
{
	DIR *dir CLEANUP(cleanup_dir) = NULL;
	char path[64], link[320], target[64];
	struct dirent *entry;
	size_t count = 0;
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	cr_assert_not_null(dir);
	while ((entry = readdir(dir))) {
		snprintf(link, sizeof(link), "%s/%s", path, entry->d_name);
		length = readlink(link, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = '\0';
		count += !strncmp(target, kind, strlen(kind));
	}
	return count;
}

struct descriptors {
	pid_t pid;
	const char *kind; /* how what they are for is called, "" for any */
	size_t nr;
};

static bool holds_descriptors(void *argument)
{
	const struct descriptors *descriptors = argument;

	return count_descriptors(descriptors->pid, descriptors->kind) <= descriptors->nr;
}

/* No more than that: what it does besides takes descriptors for a moment, and a client sees the end of a connection first. */
static void expect_descriptors(const struct served *served, const char *kind, size_t nr)
{
	struct descriptors descriptors = { served->daemon.pid, kind, nr };

	cr_expect(wait_until(holds_descriptors, &descriptors, DEADLINE_MS),
		  "%zu descriptors and not at most %zu",
		  count_descriptors(served->daemon.pid, kind), nr);
}

/* Asks often enough that each page is read anew a dozen times, see FRESH_NS. */
static void ask_again_and_again(const struct served *served)
{
	uint64_t end_ns = clock_now_ns() + 2500000000;
	static char answer[ANSWER_BYTES];
	size_t i;

	for (i = 0; i < 200 || clock_now_ns() < end_ns; i++)
		get(served, i % 2 ? "/metrics" : "/healthz", answer);
}

Test(metrics, whatever_is_said_to_the_endpoint_is_answered_and_leaves_nothing_behind)
{
	struct served served;
	struct scene scene;
	size_t nr_descriptors, i;

	scene_serve(&scene, &served, "127.0.0.1:0");
	for (i = 0; i < COUNT(request_cases); i++)
		expect_answer(&served, &request_cases[i]);
	expect_long_request_is_refused(&served);
	/* By then it has audited once, for which it keeps some. */
	ask_again_and_again(&served);
	nr_descriptors = count_descriptors(served.daemon.pid, "");
	ask_again_and_again(&served);
	expect_alive(&served);
	expect_descriptors(&served, "", nr_descriptors);
	expect_descriptors(&served, "socket:", 1);
	serve_stop(&served);
}

Test(metrics, a_crowd_that_says_half_a_request_is_sent_away_and_steering_goes_on)
{
	static const char half[] = "GET /metrics HTTP/1.1\r\nHos";
	struct clients clients CLEANUP(clients_done) = {};
	static char answer[ANSWER_BYTES];
	struct servers joined;
	struct served served;
	struct scene scene;
	int crowd[NR_CROWD];
	size_t i;

	scene_serve(&scene, &served, "127.0.0.1:0");
	for (i = 0; i < NR_CROWD; i++) {
		crowd[i] = open_client(&served);
		send(crowd[i], half, strlen(half), MSG_NOSIGNAL);
	}
	/* Who steers does not wait for them. */
	servers_start(&joined, "--workers", "2", "--port", scene.port + 1);
	scene.servers.nr_workers += 2;
	cr_expect(wait_until(is_steered, &scene, DEADLINE_MS), "nobody got a slot");
	clients_hold(&clients, &scene.servers.endpoint, 5);
	for (i = 0; i < NR_CROWD; i++) {
		read_answer(crowd[i], answer);
		cr_expect_str_empty(answer);
		close(crowd[i]);
	}
	expect_alive(&served);
	expect_descriptors(&served, "socket:", 1);
	serve_stop(&served);
}

struct health {
	const struct served *served;
	const char *code;
	const char *body;
};

/* Answers may be as old as a fraction of a second. */
static bool is_health(void *argument)
{
	const struct health *health = argument;
	static char answer[ANSWER_BYTES];

	get(health->served, "/healthz", answer);
	return !strncmp(answer + strlen("HTTP/1.1 "), health->code, 3) &&
	       !strcmp(strstr(answer, "\r\n\r\n") + 4, health->body);
}

static void await_health(const struct served *served, const char *code, const char *body)
{
	struct health health = { served, code, body };

	cr_assert(wait_until(is_health, &health, DEADLINE_MS), "never %s %s", code, body);
}

/* Steering as it is ended by others: with a program of their own. */
static void replace_program(int listener)
{
	struct sock_filter first[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	struct sock_fprog program = { COUNT(first), first };

	cr_assert_eq(setsockopt(listener, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program,
				sizeof(program)),
		     0, "%s", strerror(errno));
}

Test(metrics, health_fails_while_a_group_is_there_and_not_steered)
{
	struct plain_group group;
	struct served served;
	struct scene scene = {};

	plain_group_init(&group, "127.0.0.1", "0");
	plain_group_add_watched(&group, 1, PLAIN_BACKLOG);
	endpoint_format(&group.endpoint, scene.group);
	snprintf(scene.port, sizeof(scene.port), "%s", strrchr(scene.group, ':'));
	network_format(scene.netns);
	serve_start(&served, &scene, "127.0.0.1:0");
	await_health(&served, "200", "ok\n0 of 0 groups steered\n");
	plain_group_add_watched(&group, 2, PLAIN_BACKLOG);
	await_health(&served, "200", "ok\n1 of 1 groups steered\n");
	replace_program(group.listeners[0]);
	await_health(&served, "503", "not steered\n0 of 1 groups steered\n");
	plain_group_done(&group);
	await_health(&served, "200", "ok\n0 of 0 groups steered\n");
	serve_stop(&served);
}

Test(metrics, a_port_that_is_taken_is_said_and_leaves_the_group_untouched)
{
	struct said said CLEANUP(said_done) = {};
	struct servers other;
	struct scene scene;
	char taken[ENDPOINT_TEXT_BYTES];

	scene_start(&scene, "--workers", "2");
	servers_start(&other, "--workers", "1");
	endpoint_format(&other.endpoint, taken);
	program_run(&said, "run", scene.port, "--netns", scene.netns, "--metrics", taken);
	expect_refused(&said, taken, EXIT_FAILED, "Address already in use; nothing was attached");
	expect_untouched(&scene.servers.endpoint, "a port that is taken");
}
