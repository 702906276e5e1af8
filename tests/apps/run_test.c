/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Real servers that change while "socksteer run" keeps them: reloads, restarts, workers that die.
 */
#include "base/cleanup.h"
#include "kernel/tables.h"
#include "kernel/values.h"
#include "support/clients.h"
#include "support/daemon.h"
#include "support/foreign.h"
#include "support/nginx.h"
#include "support/program.h"
#include "support/sandbox.h"
#include "support/visiting.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(run_apps, .init = foreign_enter, .fini = foreign_leave, .timeout = TEST_SECONDS);

static const char haproxy_config[] =
	"global\n"
	"	master-worker\n"
	"	nbthread 2\n"
	"	stats socket unix@haproxy.sock mode 600 level admin expose-fd listeners\n"
	"defaults\n"
	"	mode http\n"
	"	timeout client 300s\n"
	"	timeout http-request 300s\n"
	"	timeout http-keep-alive 300s\n"
	"frontend test\n"
	"	bind " FOREIGN_GROUP " shards by-thread\n"
	"	http-request return status 200 content-type text/plain "
	"lf-string \"worker %[thread] pid %pid\\n\"\n";

/* As an operator does before a reload; it opens and closes nothing of the group. */
static void nginx_check(void)
{
	char command[256];

	snprintf(command, sizeof(command), "nginx -t -p %s -c nginx.conf >/dev/null 2>&1",
		 foreign_get()->folder);
	cr_expect_eq(system(command), 0);
}

static void run_start(struct program *daemon)
{
	char netns[NUMBER_BYTES];

	program_start(daemon, NULL,
		      (const char *const[]){ "run", FOREIGN_GROUP, "--netns", network_format(netns),
					     NULL });
	await_steered(&foreign_get()->endpoint);
}

/* What a test waits for: so many listeners in slots, none of them served by a process of old. */
struct members {
	size_t nr;
	const uint32_t *old_pids;
	size_t nr_old;
};

static bool is_old(const struct members *members, uint32_t pid)
{
	size_t i;

	for (i = 0; i < members->nr_old; i++)
		if (members->old_pids[i] == pid)
			return true;
	return false;
}

static bool are_members(void *argument)
{
	const struct members *members = argument;
	struct status status CLEANUP(status_done) = {};
	size_t i;

	foreign_status(&status);
	if (!status.groups[0].steered || status.groups[0].nr_missing ||
	    status.groups[0].nr_listeners != members->nr)
		return false;
	for (i = 0; i < members->nr; i++) {
		const struct status_listener *listener = &status.groups[0].listeners[i];

		if (listener->gone || listener->state == STATE_UNATTENDED ||
		    is_old(members, listener->pid))
			return false;
	}
	return true;
}

static void await_members(struct members members)
{
	cr_assert(wait_until(are_members, &members, DEADLINE_MS), "never %zu members that serve",
		  members.nr);
}

/* Every listener gets connections. */
static bool do_all_serve(void *argument)
{
	struct status status CLEANUP(status_done) = {};
	size_t i;

	(void)argument;
	foreign_status(&status);
	for (i = 0; i < status.groups[0].nr_listeners; i++)
		if (!status.groups[0].listeners[i].load.opened)
			return false;
	return true;
}

/* The daemon has no socket, and so no copy of a listener. */
static void expect_no_sockets(const struct program *daemon)
{
	DIR *dir CLEANUP(cleanup_dir) = NULL;
	char path[64], link[320], target[64];
	struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%d/fd", daemon->pid);
	dir = opendir(path);
	cr_assert(dir);
	while ((entry = readdir(dir))) {
		ssize_t length;

		snprintf(link, sizeof(link), "%s/%s", path, entry->d_name);
		length = readlink(link, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = '\0';
		cr_expect(strncmp(target, "socket:", 7) != 0, "the daemon holds %s", target);
	}
}

/* More than any listener should wait for its slot, on a machine that does other work too. */
#define SLOT_MS_MAX 200

/* Of all joins that the daemon's log tells of. */
static void expect_soon_in_slots(const char *log)
{
	static const char words[] = "(in a slot ";
	const char *found = log;
	double ms, longest = 0;
	size_t count = 0;

	while ((found = strstr(found, words))) {
		found += strlen(words);
		ms = strtod(found, NULL);
		longest = ms > longest ? ms : longest;
		count++;
	}
	cr_log_info("%zu joins, in a slot %.1f ms after listen at the latest", count, longest);
	cr_expect_gt(count, 0, "no join: %s", log);
	cr_expect_lt(longest, SLOT_MS_MAX, "a listener waited for %.1f ms", longest);
}

static size_t cookies_read(uint64_t cookies[16])
{
	struct status status CLEANUP(status_done) = {};
	size_t i;

	foreign_status(&status);
	for (i = 0; i < status.groups[0].nr_listeners && i < 16; i++)
		cookies[i] = status.groups[0].listeners[i].cookie;
	return i;
}

static size_t pids_read(uint32_t pids[16])
{
	struct status status CLEANUP(status_done) = {};
	size_t i;

	foreign_status(&status);
	for (i = 0; i < status.groups[0].nr_listeners && i < 16; i++)
		pids[i] = status.groups[0].listeners[i].pid;
	return i;
}

Test(run_apps, nginx_reloads_with_more_and_fewer_workers_and_no_visit_fails)
{
	static const size_t counts[] = { 2, 3, 1, 2, 4, 4 };
	struct said said CLEANUP(said_done) = {};
	struct visiting visiting;
	struct program daemon;
	sigset_t children;
	size_t i;

	nginx_start(2);
	run_start(&daemon);
	/* The end of nginx -t would interrupt the visitors. */
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	cr_assert_eq(pthread_sigmask(SIG_BLOCK, &children, NULL), 0);
	visiting_start(&visiting, &foreign_get()->endpoint);
	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		nginx_reload(counts[i]);
		await_members((struct members){ .nr = counts[i] });
		nginx_check();
		await_members((struct members){ .nr = counts[i] });
		cr_expect(wait_until(do_all_serve, NULL, DEADLINE_MS), "somebody starves of %zu",
			  counts[i]);
		expect_no_sockets(&daemon);
	}
	visiting_stop(&visiting);
	program_succeeds("audit", "--repair");
	program_succeeds("audit");
	daemon_stop(&daemon, &said);
	expect_soon_in_slots(said.error);
}

Test(run_apps, nginx_that_stops_and_starts_is_steered_again_and_the_gap_is_logged)
{
	struct said said CLEANUP(said_done) = {};
	struct program daemon;

	nginx_start(2);
	run_start(&daemon);
	kill(foreign_get()->pid, SIGQUIT);
	cr_assert_eq(waitpid(foreign_get()->pid, NULL, 0), foreign_get()->pid);
	nginx_start(3);
	await_steered(&foreign_get()->endpoint);
	await_members((struct members){ .nr = 3 });
	daemon_stop(&daemon, &said);
	cr_expect(strstr(said.error, "came back and is steered again") != NULL, "%s", said.error);
}

/* Rows of the shared tables that are taken, as bpftool would show them. */
static void expect_rows_taken(size_t expected, size_t round)
{
	struct worker *workers CLEANUP(cleanup_free) = calloc(MAX_WORKERS, sizeof(*workers));
	struct listener_info *infos CLEANUP(cleanup_free) = calloc(MAX_LISTENERS, sizeof(*infos));
	struct tables tables CLEANUP(tables_done) = TABLES_NONE;
	struct failure failure = {};
	size_t i, nr_workers = 0, nr_listeners = 0;

	cr_assert_eq(tables_open(&tables, &failure), 0, "%s", failure.message);
	cr_assert_eq(values_read(tables.workers, workers, sizeof(*workers), MAX_WORKERS), 0);
	cr_assert_eq(values_read(tables.listener_info, infos, sizeof(*infos), MAX_LISTENERS), 0);
	for (i = 0; i < MAX_WORKERS; i++)
		nr_workers += workers[i].pid != 0;
	for (i = 0; i < MAX_LISTENERS; i++)
		nr_listeners += infos[i].cookie != 0;
	cr_expect_eq(nr_workers, expected, "round %zu: %zu workers", round, nr_workers);
	cr_expect_eq(nr_listeners, expected, "round %zu: %zu listeners", round, nr_listeners);
}

static size_t nr_descriptors(pid_t pid)
{
	DIR *dir CLEANUP(cleanup_dir) = NULL;
	char path[64];
	size_t count = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	cr_assert(dir);
	while (readdir(dir))
		count++;
	return count;
}

struct fewer {
	pid_t pid;
	size_t nr;
};

/* An update has some open for a moment; the audit's stay, and come with the first change. */
static bool has_no_more(void *argument)
{
	const struct fewer *fewer = argument;

	return nr_descriptors(fewer->pid) <= fewer->nr;
}

#define NR_ROUNDS 15

Test(run_apps, workers_of_nginx_that_are_killed_and_respawned_leave_nothing_behind)
{
	struct said said CLEANUP(said_done) = {};
	struct fewer few = {};
	struct program daemon;
	uint32_t pids[16];
	size_t round;

	nginx_start(3);
	run_start(&daemon);
	few.pid = daemon.pid;
	for (round = 0; round < NR_ROUNDS; round++) {
		cr_assert_eq(pids_read(pids), 3);
		kill((pid_t)pids[round % 3], SIGKILL);
		await_members((struct members){ 3, &pids[round % 3], 1 });
		clients_visit(&foreign_get()->endpoint, 12, 1, END_CLIENT_FIRST);
		cr_expect(wait_until(do_all_serve, NULL, DEADLINE_MS), "round %zu", round);
		expect_rows_taken(3, round);
		if (round == NR_ROUNDS / 3)
			few.nr = nr_descriptors(daemon.pid);
	}
	cr_expect(wait_until(has_no_more, &few, DEADLINE_MS), "more than %zu descriptors", few.nr);
	expect_no_sockets(&daemon);
	daemon_stop(&daemon, &said);
	cr_expect(strstr(said.error, "busy") == NULL, "%s", said.error);
	cr_expect(strstr(said.error, "cannot") == NULL, "%s", said.error);
}

Test(run_apps, haproxy_that_is_replaced_keeps_its_slots_and_no_visit_fails)
{
	struct said said CLEANUP(said_done) = {};
	struct visiting visiting;
	struct program daemon;
	uint64_t before[16], after[16];
	uint32_t pids[16];
	size_t round;

	foreign_write("haproxy.cfg", haproxy_config);
	foreign_start("haproxy", "-W", "-db", "-f", "haproxy.cfg");
	run_start(&daemon);
	cr_assert_eq(cookies_read(before), 2);
	visiting_start(&visiting, &foreign_get()->endpoint);
	for (round = 0; round < 3; round++) {
		cr_assert_eq(pids_read(pids), 2);
		cr_expect_eq(pids[0], pids[1], "two threads of one process");
		kill(foreign_get()->pid, SIGUSR2);
		await_members((struct members){ 2, pids, 1 });
		cr_expect(wait_until(do_all_serve, NULL, DEADLINE_MS), "somebody starves");
	}
	visiting_stop(&visiting);
	cr_assert_eq(cookies_read(after), 2);
	cr_expect(before[0] == after[0] && before[1] == after[1], "other sockets than before");
	expect_no_sockets(&daemon);
	daemon_stop(&daemon, &said);
}

#define FILE_FORMAT "[group " FOREIGN_GROUP "]\nnetns = %s\npolicy = %s\n"

/* The policy changes each time, and nothing may be left to the hash meanwhile. */
Test(run_apps, the_daemon_reads_its_file_again_under_load_and_no_visit_fails)
{
	static const char *const policies[] = { "p2c", "least-conn", "round-robin",
						"least-loaded" };
	struct status status CLEANUP(status_done) = {};
	struct said said CLEANUP(said_done) = {};
	struct config_file file;
	struct visiting visiting;
	struct program daemon;
	char netns[NUMBER_BYTES];
	uint32_t outcome;
	size_t i;

	nginx_start(3);
	config_file_new(&file);
	network_format(netns);
	config_file_write(&file, FILE_FORMAT, netns, "least-loaded");
	program_start(&daemon, NULL, (const char *const[]){ "run", "--config", file.path, NULL });
	await_steered(&foreign_get()->endpoint);
	visiting_start(&visiting, &foreign_get()->endpoint);
	for (i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		char words[64];

		config_file_write(&file, FILE_FORMAT, netns, policies[i]);
		kill(daemon.pid, SIGHUP);
		snprintf(words, sizeof(words), "policy is %s from now on", policies[i]);
		daemon_await_said(&daemon, words);
		visiting_await(&visiting, 20);
	}
	visiting_stop(&visiting);
	foreign_status(&status);
	for (outcome = 0; outcome < NR_OUTCOMES; outcome++)
		cr_expect(outcome == OUTCOME_SELECTED || !status.groups[0].outcomes[outcome],
			  "outcome %u: %lu", outcome,
			  (unsigned long)status.groups[0].outcomes[outcome]);
	daemon_stop(&daemon, &said);
	config_file_done(&file);
}
