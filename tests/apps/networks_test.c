/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * nginx in two other network namespaces, as containers have them, on one port: one daemon outside finds
 * and steers both.
 *
 * A daemon with "all" sees every nginx of the machine, so the pattern names an address of this test alone.
 */
#include "base/cleanup.h"
#include "support/clients.h"
#include "support/daemon.h"
#include "support/foreign.h"
#include "support/program.h"
#include "support/sandbox.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

TestSuite(networks, .init = foreign_enter, .fini = foreign_leave, .timeout = TEST_SECONDS);

static const char config[] = "daemon off;\n"
			     "user root;\n"
			     "pid nginx.pid;\n"
			     "error_log stderr;\n"
			     "worker_processes 2;\n"
			     "events { worker_connections 128; }\n"
			     "http {\n"
			     "	access_log off;\n"
			     "	client_body_temp_path body;\n"
			     "	proxy_temp_path proxy;\n"
			     "	fastcgi_temp_path fastcgi;\n"
			     "	uwsgi_temp_path uwsgi;\n"
			     "	scgi_temp_path scgi;\n"
			     "	server {\n"
			     "		listen %s:" FOREIGN_PORT " reuseport;\n"
			     "		location / { return 200 \"worker 0 pid $pid\\n\"; }\n"
			     "	}\n"
			     "}\n";

struct container {
	struct network network;
	pid_t pid;
};

static void start(struct container *container)
{
	network_new(&container->network);
	network_enter(&container->network);
	foreign_start("nginx", "-p", foreign_get()->folder, "-c", "nginx.conf");
	container->pid = foreign_get()->pid;
}

static bool has_ended(void *argument)
{
	return waitpid(*(const pid_t *)argument, NULL, WNOHANG) != 0;
}

static void expect_group(const struct container *container, const struct endpoint *endpoint)
{
	struct clients clients CLEANUP(clients_done) = {};

	network_enter(&container->network);
	await_steered(endpoint);
	clients_hold(&clients, endpoint, 20);
}

Test(networks, one_port_in_two_networks_is_two_groups_of_one_daemon_outside)
{
	struct said said CLEANUP(said_done) = {};
	struct status status CLEANUP(status_done) = {};
	char address[NUMBER_BYTES], match[64], text[sizeof(config) + NUMBER_BYTES];
	struct failure failure = {};
	struct container containers[2];
	struct endpoint endpoint;
	struct program daemon;
	struct network outside;
	unsigned int pid = (unsigned int)getpid();
	size_t i;

	snprintf(address, sizeof(address), "127.%u.%u.13", 1 + pid / 256 % 254, pid % 256);
	snprintf(match, sizeof(match), "address=%s:" FOREIGN_PORT, address);
	snprintf(text, sizeof(text), config, address);
	foreign_write("nginx.conf", text);
	cr_assert_eq(endpoint_parse(address, FOREIGN_PORT, &endpoint), 0);
	network_current(&outside);
	program_start(&daemon, NULL,
		      (const char *const[]){ "run", "--all", "--match", "command=nginx", "--match",
					     match, NULL });
	for (i = 0; i < 2; i++)
		start(&containers[i]);
	for (i = 0; i < 2; i++)
		expect_group(&containers[i], &endpoint);
	network_enter(&outside);
	cr_assert_eq(status_read(NULL, &status, &failure), 0, "%s", failure.message);
	cr_assert_eq(status.nr_groups, 2);
	for (i = 0; i < 2; i++) {
		const struct status_group *group = &status.groups[i];

		cr_expect(group->steered);
		cr_expect(group->netns == containers[0].network.inode ||
			  group->netns == containers[1].network.inode);
		cr_expect_eq(group->nr_listeners, 2);
		cr_expect_eq(group->outcomes[OUTCOME_SELECTED], 20);
	}
	cr_expect_neq(status.groups[0].netns, status.groups[1].netns);
	daemon_stop(&daemon, &said);
	kill(containers[0].pid, SIGTERM);
	cr_expect(wait_until(has_ended, &containers[0].pid, DEADLINE_MS));
	for (i = 0; i < 2; i++)
		network_done(&containers[i].network);
	network_done(&outside);
}
