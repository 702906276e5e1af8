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
