/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * HAProxy with a listener for each thread: one process, and as many event loops as threads.
 */
#include "base/cleanup.h"
#include "support/clients.h"
#include "support/foreign.h"
#include "support/program.h"
#include "support/sandbox.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

TestSuite(haproxy, .init = foreign_enter, .fini = foreign_leave, .timeout = TEST_SECONDS);

/* The answer says which thread gave it. */
static const char config[] = "global\n"
			     "	nbthread 2\n"
			     "defaults\n"
			     "	mode http\n"
			     "	timeout client 300s\n"
			     "	timeout http-request 300s\n"
			     "	timeout http-keep-alive 300s\n"
			     "frontend test\n"
			     "	bind " FOREIGN_GROUP " shards by-thread\n"
			     "	http-request return status 200 content-type text/plain "
			     "lf-string \"worker %[thread] pid %pid\\n\"\n";

Test(haproxy, two_threads_of_one_process_are_two_workers)
{
	struct said list CLEANUP(said_done) = {}, attach CLEANUP(said_done) = {};
	struct status status CLEANUP(status_done) = {};
	struct clients clients = {};
	char netns[NUMBER_BYTES], workers[64];
	size_t i;

	foreign_write("haproxy.cfg", config);
	foreign_start("haproxy", "-db", "-f", "haproxy.cfg");
	foreign_await(2, 2, 1);
	network_format(netns);
	program_run(&list, "list");
	snprintf(workers, sizeof(workers), "haproxy:%d(2)", foreign_get()->pid);
	expect_done(&list, "list", workers);
	program_run(&attach, "attach", FOREIGN_GROUP, "--netns", netns);
	expect_done(&attach, "attach", "steering 2 listeners of 2 workers");

	clients_hold(&clients, &foreign_get()->endpoint, 20);
	cr_expect_eq(clients_most(&clients, 2), 10);
	cr_expect_eq(clients_fewest(&clients, 2), 10);
	foreign_status(&status);
	cr_assert_eq(status.groups[0].nr_listeners, 2);
	for (i = 0; i < 2; i++) {
		const struct status_listener *listener = &status.groups[0].listeners[i];

		cr_expect_eq(listener->pid, (uint32_t)foreign_get()->pid);
		cr_expect_eq(listener->held, 10);
		cr_expect_eq(listener->worker_held, 10);
	}
	clients_close(&clients, EVERY_WORKER);
	program_succeeds("detach", "--all");
	expect_untouched(&foreign_get()->endpoint, "detach");
}

/* The process twice, with a worker of its own each time. The rest of the list is of other groups. */
static void expect_listed(const char *list)
{
	char words[64];
	size_t i;

	snprintf(words, sizeof(words), "\"pid\": %d,", foreign_get()->pid);
	for (i = 0; i < 2; i++) {
		unsigned int worker = UINT_MAX;
		const char *found;

		list = strstr(list, words);
		cr_assert_not_null(list, "%s is not there %zu times", words, i + 1);
		list += strlen(words);
		found = strstr(list, "\"worker\": ");
		cr_assert_not_null(found);
		cr_expect_eq(sscanf(found, "\"worker\": %u", &worker), 1);
		cr_expect_eq(worker, i);
	}
}

Test(haproxy, two_threads_of_one_process_are_told_apart_in_every_view_and_drained_by_slot)
{
	struct said list CLEANUP(said_done) = {}, top CLEANUP(said_done) = {};
	struct said refused CLEANUP(said_done) = {}, drain CLEANUP(said_done) = {};
	char netns[NUMBER_BYTES], worker[32], row[2][32];
	struct status status CLEANUP(status_done) = {};
	size_t i;

	foreign_write("haproxy.cfg", config);
	foreign_start("haproxy", "-db", "-f", "haproxy.cfg");
	foreign_await(2, 2, 1);
	network_format(netns);
	program_succeeds("attach", FOREIGN_GROUP, "--netns", netns);
	foreign_status(&status);
	cr_assert_eq(status.groups[0].nr_listeners, 2);
	cr_expect_neq(status.groups[0].listeners[0].worker, status.groups[0].listeners[1].worker);
	program_run(&list, "list", "--json");
	cr_assert_eq(list.code, EXIT_DONE, "%s", list.error);
	expect_listed(list.output);
	program_run(&top, "top", FOREIGN_GROUP, "--netns", netns, "--once");
	for (i = 0; i < 2; i++) {
		snprintf(row[i], sizeof(row[i]), "%zu %7d haproxy", i, foreign_get()->pid);
		expect_done(&top, "top --once", row[i]);
	}
	snprintf(worker, sizeof(worker), "haproxy:%d", foreign_get()->pid);
	program_run(&refused, "drain", FOREIGN_GROUP, worker, "--netns", netns);
	cr_expect_eq(refused.code, EXIT_USAGE, "%s", refused.error);
	cr_expect(strstr(refused.error, "is several workers; name one by its slot:") != NULL, "%s",
		  refused.error);
	program_run(&drain, "drain", FOREIGN_GROUP, "1", "--netns", netns);
	expect_done(&drain, "drain", "(slot 1) gets no new connections from now on");
	status_done(&status);
	status = (struct status){};
	foreign_status(&status);
	cr_expect(!status.groups[0].listeners[0].draining);
	cr_expect(status.groups[0].listeners[1].draining);
}
