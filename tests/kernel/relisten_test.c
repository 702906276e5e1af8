/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * relisten: a listener that is shut and listens again is in every respect the one that it was, but that
 * its queue has moved to another. Without steering: tcp_migrate_req makes the kernel migrate.
 */
#include "kernel/relisten.h"
#include "base/cleanup.h"
#include "support/footprint.h"
#include "support/plain_group.h"
#include "support/sandbox.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define NR_CLIENTS 50
#define PAYLOAD_BYTES 3000

/* Not in the headers of Debian 12. */
#define OPTION_RTO_MAX_MS 44
#define OPTION_RTO_MIN_US 45
#define OPTION_DELACK_MAX_US 46

TestSuite(relisten, .init = quick_sandbox_enter, .timeout = TEST_SECONDS);

static void relisten(int fd, const char *what)
{
	struct relisten relisten;
	int err = relisten_prepare(fd, &relisten);

	if (!err)
		err = relisten_run(fd, &relisten);
	cr_assert_eq(err, 0, "%s: %s", what, strerror(-err));
	cr_assert(listener_listens(fd), "%s", what);
}

/* What can be set on a listener, with a value that is no default. */
static const struct {
	const char *name;
	int level;
	int option;
	int value;
} options[] = {
	{ "SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE, 1 },
	{ "SO_OOBINLINE", SOL_SOCKET, SO_OOBINLINE, 1 },
	{ "SO_PRIORITY", SOL_SOCKET, SO_PRIORITY, 4 },
	{ "SO_MARK", SOL_SOCKET, SO_MARK, 7 },
	{ "SO_RCVBUF", SOL_SOCKET, SO_RCVBUF, 50000 },
	{ "SO_SNDBUF", SOL_SOCKET, SO_SNDBUF, 60000 },
	{ "SO_RCVLOWAT", SOL_SOCKET, SO_RCVLOWAT, 5 },
	{ "SO_BUSY_POLL", SOL_SOCKET, SO_BUSY_POLL, 20 },
	{ "SO_INCOMING_CPU", SOL_SOCKET, SO_INCOMING_CPU, 1 },
	{ "SO_MAX_PACING_RATE", SOL_SOCKET, SO_MAX_PACING_RATE, 123456 },
	{ "SO_PEEK_OFF", SOL_SOCKET, SO_PEEK_OFF, 3 },
	{ "SO_TIMESTAMP", SOL_SOCKET, SO_TIMESTAMP, 1 },
	{ "SO_DONTROUTE", SOL_SOCKET, SO_DONTROUTE, 1 },
	{ "TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY, 1 },
	{ "TCP_CORK", IPPROTO_TCP, TCP_CORK, 1 },
	{ "TCP_MAXSEG", IPPROTO_TCP, TCP_MAXSEG, 1000 },
	{ "TCP_WINDOW_CLAMP", IPPROTO_TCP, TCP_WINDOW_CLAMP, 20000 },
	{ "TCP_KEEPIDLE", IPPROTO_TCP, TCP_KEEPIDLE, 77 },
	{ "TCP_KEEPINTVL", IPPROTO_TCP, TCP_KEEPINTVL, 7 },
	{ "TCP_KEEPCNT", IPPROTO_TCP, TCP_KEEPCNT, 4 },
	{ "TCP_SYNCNT", IPPROTO_TCP, TCP_SYNCNT, 3 },
	{ "TCP_LINGER2", IPPROTO_TCP, TCP_LINGER2, 7 },
	{ "TCP_DEFER_ACCEPT", IPPROTO_TCP, TCP_DEFER_ACCEPT, 5 },
	{ "TCP_USER_TIMEOUT", IPPROTO_TCP, TCP_USER_TIMEOUT, 7777 },
	{ "TCP_NOTSENT_LOWAT", IPPROTO_TCP, TCP_NOTSENT_LOWAT, 9999 },
	{ "TCP_SAVE_SYN", IPPROTO_TCP, TCP_SAVE_SYN, 1 },
	{ "TCP_FASTOPEN", IPPROTO_TCP, TCP_FASTOPEN, 9 },
	{ "TCP_FASTOPEN_NO_COOKIE", IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1 },
	{ "TCP_THIN_LINEAR_TIMEOUTS", IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1 },
	{ "TCP_INQ", IPPROTO_TCP, TCP_INQ, 1 },
	{ "TCP_TX_DELAY", IPPROTO_TCP, TCP_TX_DELAY, 100 },
	{ "TCP_QUICKACK", IPPROTO_TCP, TCP_QUICKACK, 0 },
	{ "TCP_RTO_MAX_MS", IPPROTO_TCP, OPTION_RTO_MAX_MS, 60000 },
	{ "TCP_RTO_MIN_US", IPPROTO_TCP, OPTION_RTO_MIN_US, 100000 },
	{ "TCP_DELACK_MAX_US", IPPROTO_TCP, OPTION_DELACK_MAX_US, 20000 },
	{ "IP_TOS", IPPROTO_IP, IP_TOS, 16 },
	{ "IP_TTL", IPPROTO_IP, IP_TTL, 33 },
	{ "IP_MINTTL", IPPROTO_IP, IP_MINTTL, 2 },
	{ "IP_FREEBIND", IPPROTO_IP, IP_FREEBIND, 1 },
	{ "IP_TRANSPARENT", IPPROTO_IP, IP_TRANSPARENT, 1 },
	{ "IP_MTU_DISCOVER", IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO },
	{ "IP_RECVTOS", IPPROTO_IP, IP_RECVTOS, 1 },
	{ "IPV6_TCLASS", IPPROTO_IPV6, IPV6_TCLASS, 16 },
	{ "IPV6_UNICAST_HOPS", IPPROTO_IPV6, IPV6_UNICAST_HOPS, 33 },
	{ "IPV6_MTU_DISCOVER", IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO },
	{ "IPV6_RECVPKTINFO", IPPROTO_IPV6, IPV6_RECVPKTINFO, 1 },
	{ "IPV6_AUTOFLOWLABEL", IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 0 },
	{ "IPV6_TRANSPARENT", IPPROTO_IPV6, IPV6_TRANSPARENT, 1 },
};

/* Which of these a kernel or a family lacks differs; most are there. */
#define MIN_OPTIONS 30

static size_t set_options(int fd)
{
	const struct linger linger = { 1, 33 };
	size_t i, count = 0;

	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	cr_assert_eq(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4), 0);
	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		count += !setsockopt(fd, options[i].level, options[i].option, &options[i].value,
				     sizeof(options[i].value));
	return count;
}

#define NR_LEVELS 4
#define NR_OPTIONS 256
#define OPTION_BYTES 64

static const int levels[NR_LEVELS] = { SOL_SOCKET, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP };

/* What getsockopt() says of everything that there is, whatever it is called. */
struct everything {
	struct {
		int result; /* length, or -errno */
		char bytes[OPTION_BYTES];
	} options[NR_LEVELS][NR_OPTIONS];
};

/* The one is cleared when it is read, the other is a clock. */
static bool is_left_out(int level, int option)
{
	return (level == SOL_SOCKET && option == SO_ERROR) ||
	       (level == IPPROTO_TCP && option == TCP_TIMESTAMP);
}

static void read_everything(int fd, struct everything *everything)
{
	size_t level;
	int option;

	memset(everything, 0, sizeof(*everything));
	for (level = 0; level < NR_LEVELS; level++)
		for (option = 0; option < NR_OPTIONS; option++) {
			socklen_t length = OPTION_BYTES;

			if (is_left_out(levels[level], option))
				continue;
			everything->options[level][option].result =
				getsockopt(fd, levels[level], option,
					   everything->options[level][option].bytes, &length) ?
					-errno :
					(int)length;
		}
}

static const char *option_name(int level, int option)
{
	static char text[64];
	size_t i;

	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (options[i].level == level && options[i].option == option)
			return options[i].name;
	snprintf(text, sizeof(text), "level %d, option %d", level, option);
	return text;
}

static void expect_everything(int fd, const struct everything *before, const char *what)
{
	static struct everything now;
	size_t level;
	int option;

	read_everything(fd, &now);
	for (level = 0; level < NR_LEVELS; level++)
		for (option = 0; option < NR_OPTIONS; option++) {
			const char *name = option_name(levels[level], option);

			cr_expect_eq(now.options[level][option].result,
				     before->options[level][option].result, "%s: %s", what, name);
			cr_expect_arr_eq(now.options[level][option].bytes,
					 before->options[level][option].bytes, OPTION_BYTES,
					 "%s: %s", what, name);
		}
}

static const struct {
	const char *address;
	bool sets_options;
} option_cases[] = {
	{ "127.0.0.1", false },
	{ "127.0.0.1", true },
	{ "::1", false },
	{ "::1", true },
};

Test(relisten, every_option_of_the_listener_is_as_it_was)
{
	static struct everything before;
	size_t i;

	for (i = 0; i < sizeof(option_cases) / sizeof(option_cases[0]); i++) {
		struct plain_group group;
		int fd;

		plain_group_init(&group, option_cases[i].address, "0");
		plain_group_add(&group, 10);
		fd = group.listeners[0];
		if (option_cases[i].sets_options)
			cr_assert_geq(set_options(fd), (size_t)MIN_OPTIONS);
		read_everything(fd, &before);
		relisten(fd, option_cases[i].address);
		expect_everything(fd, &before, option_cases[i].address);
		plain_group_done(&group);
	}
}

static int client_open(const struct endpoint *endpoint)
{
	int fd = socket(endpoint->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert(fd >= 0);
	cr_assert_eq(connect(fd, (const struct sockaddr *)&endpoint->address,
			     endpoint->nr_address_bytes),
		     0, "connect: %s", strerror(errno));
	return fd;
}

static uint32_t queued_on(int fd)
{
	uint32_t queued, backlog;

	listener_read_counts(fd, &queued, &backlog);
	return queued;
}

static const struct {
	const char *address;
	const char *port;
} places[] = {
	{ "127.0.0.1", "0" }, /* the port is the kernel's choice */
	{ "127.0.0.1", "4242" }, /* the port is the caller's */
	{ "127.0.0.1", "80" }, /* and needs a right */
	{ "0.0.0.0", "0" },	 { "0.0.0.0", "4242" }, { "::1", "0" },
	{ "::1", "4242" },	 { "::", "0" },		{ "::", "4242" },
};

Test(relisten, the_listener_is_where_it_was_with_the_backlog_it_had_and_a_member_of_its_group)
{
	size_t i;

	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct plain_group group;
		struct footprint footprint;
		struct endpoint endpoint;
		uint32_t queued, backlog;
		int client;

		plain_group_init(&group, places[i].address, places[i].port);
		plain_group_add(&group, 17);
		plain_group_add(&group, 17);
		relisten(group.listeners[0], places[i].address);
		cr_assert_eq(endpoint_of_socket(group.listeners[0], &endpoint), 0);
		cr_expect_arr_eq(&endpoint, &group.endpoint, sizeof(endpoint), "%s:%s",
				 places[i].address, places[i].port);
		footprint_look(&group.endpoint, &footprint);
		cr_expect_eq(footprint.nr_listeners, 2, "%s:%s", places[i].address, places[i].port);
		listener_read_counts(group.listeners[0], &queued, &backlog);
		cr_expect_eq(backlog, 17);
		plain_group_close(&group, 1);
		client = client_open(&group.endpoint);
		cr_expect_eq(queued_on(group.listeners[0]), 1, "%s:%s", places[i].address,
			     places[i].port);
		close(client);
		plain_group_done(&group);
	}
}

Test(relisten, a_backlog_that_is_no_longer_allowed_becomes_the_highest_that_is)
{
	struct plain_group group;
	uint32_t queued, backlog;

	plain_group_init(&group, "127.0.0.1", "0");
	plain_group_add(&group, 100);
	sysctl_write("net/core/somaxconn", "50");
	relisten(group.listeners[0], "somaxconn");
	listener_read_counts(group.listeners[0], &queued, &backlog);
	cr_expect_eq(backlog, 50);
	plain_group_done(&group);
}

/* One listener with connections in its queue, that have sent something, and then a second one. */
struct queue {
	struct plain_group group;
	int clients[NR_CLIENTS];
};

/* What a client sends: different bytes from each. */
static void fill_payload(char payload[PAYLOAD_BYTES], size_t client)
{
	size_t i;

	for (i = 0; i < PAYLOAD_BYTES; i++)
		payload[i] = (char)(i * 7 + client * 13 + (i >> 8));
	memcpy(payload, &client, sizeof(client));
}

static void queue_send(const struct queue *queue)
{
	char payload[PAYLOAD_BYTES];
	size_t i;

	for (i = 0; i < NR_CLIENTS; i++) {
		fill_payload(payload, i);
		cr_assert_eq(send(queue->clients[i], payload, sizeof(payload), MSG_NOSIGNAL),
			     PAYLOAD_BYTES);
	}
}

static void queue_start(struct queue *queue, int defer_seconds)
{
	size_t i;

	sysctl_write("net/ipv4/tcp_migrate_req", "1");
	plain_group_init(&queue->group, "127.0.0.1", "0");
	plain_group_add_watched(&queue->group, 1, PLAIN_BACKLOG);
	cr_assert_eq(setsockopt(queue->group.listeners[0], IPPROTO_TCP, TCP_DEFER_ACCEPT,
				&defer_seconds, sizeof(defer_seconds)),
		     0);
	for (i = 0; i < NR_CLIENTS; i++)
		queue->clients[i] = client_open(&queue->group.endpoint);
	plain_group_add_watched(&queue->group, 1, PLAIN_BACKLOG);
}

static void queue_done(struct queue *queue)
{
	size_t i;

	for (i = 0; i < NR_CLIENTS; i++)
		close(queue->clients[i]);
	plain_group_done(&queue->group);
}

static void read_payload(int fd, char payload[PAYLOAD_BYTES])
{
	size_t used = 0;

	while (used < PAYLOAD_BYTES) {
		struct pollfd input = { .fd = fd, .events = POLLIN };
		ssize_t length;

		cr_assert_eq(poll(&input, 1, TEST_SECONDS * 1000 / 2), 1);
		length = recv(fd, payload + used, PAYLOAD_BYTES - used, 0);
		cr_assert_gt(length, 0, "recv: %s", strerror(errno));
		used += (size_t)length;
	}
}

/* Accepts all from this listener, and expects to read what each of the clients sent, once. */
static void expect_payloads(const struct queue *queue, size_t listener)
{
	char payload[PAYLOAD_BYTES], expected[PAYLOAD_BYTES];
	bool is_seen[NR_CLIENTS] = {};
	size_t i, client;

	for (i = 0; i < NR_CLIENTS; i++) {
		int fd CLEANUP(cleanup_fd) = plain_group_accept(&queue->group, listener);

		cr_assert(fd >= 0, "%zu connections", i);
		read_payload(fd, payload);
		memcpy(&client, payload, sizeof(client));
		cr_assert_lt(client, (size_t)NR_CLIENTS);
		fill_payload(expected, client);
		cr_expect_arr_eq(payload, expected, PAYLOAD_BYTES, "client %zu", client);
		cr_expect_not(is_seen[client]);
		is_seen[client] = true;
	}
}

static uint32_t events_of(const struct plain_group *group, size_t index)
{
	struct epoll_event event = {};

	return epoll_wait(group->epolls[index], &event, 1, 0) == 1 ? event.events : 0;
}

Test(relisten, all_that_was_queued_moves_byte_by_byte_and_its_new_owner_is_woken)
{
	struct queue queue;
	bool kernel_wakes;

	queue_start(&queue, 0);
	queue_send(&queue);
	cr_assert_eq(queued_on(queue.group.listeners[0]), NR_CLIENTS);
	relisten(queue.group.listeners[0], "relisten");
	cr_expect_eq(queued_on(queue.group.listeners[0]), 0);
	cr_expect_eq(queued_on(queue.group.listeners[1]), NR_CLIENTS);
	kernel_wakes = events_of(&queue.group, 1);
	cr_log_info("this kernel %s the new owner\n", kernel_wakes ? "wakes" : "does not wake");
	listener_wake(queue.group.listeners[1]);
	cr_expect_eq(events_of(&queue.group, 1), EPOLLIN);
	expect_payloads(&queue, 1);
	queue_done(&queue);
}

Test(relisten, a_listener_that_is_woken_without_need_goes_on)
{
	struct plain_group group;
	int client;

	plain_group_init(&group, "127.0.0.1", "0");
	plain_group_add_watched(&group, 1, PLAIN_BACKLOG);
	listener_wake(group.listeners[0]);
	cr_expect_eq(events_of(&group, 0), 0);
	cr_expect(listener_listens(group.listeners[0]));
	client = client_open(&group.endpoint);
	cr_expect_eq(events_of(&group, 0), EPOLLIN);
	close(client);
	plain_group_done(&group);
}

Test(relisten, epoll_registrations_go_on_working)
{
	static const uint32_t kinds[] = { EPOLLIN, EPOLLIN | EPOLLET, EPOLLIN | EPOLLEXCLUSIVE };
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct epoll_event event = { .events = kinds[i] };
		struct plain_group group;
		int client, epoll = epoll_create1(EPOLL_CLOEXEC);

		plain_group_init(&group, "127.0.0.1", "0");
		plain_group_add(&group, PLAIN_BACKLOG);
		cr_assert_eq(epoll_ctl(epoll, EPOLL_CTL_ADD, group.listeners[0], &event), 0);
		relisten(group.listeners[0], "epoll");
		while (epoll_wait(epoll, &event, 1, 0) == 1)
			cr_assert_not(event.events & EPOLLHUP, "kind %zu", i);
		client = client_open(&group.endpoint);
		cr_expect_eq(epoll_wait(epoll, &event, 1, 1000), 1, "kind %zu", i);
		cr_expect_eq(event.events, EPOLLIN, "kind %zu", i);
		close(client);
		close(epoll);
		plain_group_done(&group);
	}
}

/* With TCP_DEFER_ACCEPT a handshake is not finished before the client sends something. */
Test(relisten, handshakes_that_are_not_finished_stay_with_the_listener)
{
	struct queue queue;

	queue_start(&queue, 30);
	cr_assert_eq(queued_on(queue.group.listeners[0]), 0);
	relisten(queue.group.listeners[0], "relisten");
	queue_send(&queue);
	cr_expect_eq(queued_on(queue.group.listeners[0]), NR_CLIENTS);
	expect_payloads(&queue, 0);
	queue_done(&queue);
}

Test(relisten, what_does_not_listen_is_refused)
{
	struct endpoint endpoint;
	struct relisten relisten;
	int fd CLEANUP(cleanup_fd) = -1;

	cr_assert_eq(endpoint_parse("127.0.0.1", "0", &endpoint), 0);
	cr_assert_eq(listener_bind(&endpoint, (struct listener_kind){ .has_reuseport = true }, &fd),
		     0);
	cr_expect_eq(relisten_prepare(fd, &relisten), -ENOTCONN);
}

Test(relisten, a_listener_that_was_left_shut_is_finished_where_it_was)
{
	struct relisten relisten;
	struct plain_group group;
	struct endpoint endpoint;

	plain_group_init(&group, "127.0.0.1", "0");
	plain_group_add(&group, PLAIN_BACKLOG);
	cr_assert_eq(relisten_prepare(group.listeners[0], &relisten), 0);
	cr_assert_eq(shutdown(group.listeners[0], SHUT_RDWR), 0);
	cr_expect_eq(relisten_finish(group.listeners[0], &relisten), 0);
	cr_expect(listener_listens(group.listeners[0]));
	cr_assert_eq(endpoint_of_socket(group.listeners[0], &endpoint), 0);
	cr_expect_arr_eq(&endpoint, &group.endpoint, sizeof(endpoint));
	cr_expect_eq(relisten_finish(group.listeners[0], &relisten), 0);
	plain_group_done(&group);
}

static void run_ip(const char *arguments)
{
	char command[128];

	snprintf(command, sizeof(command), "ip addr %s", arguments);
	cr_assert_eq(system(command), 0, "%s", command);
}

static const struct {
	const char *address;
	const char *port;
	const char *add;
	const char *remove;
} leaving[] = {
	{ "10.9.9.9", "0", "add 10.9.9.9/32 dev lo", "del 10.9.9.9/32 dev lo" },
	{ "10.9.9.9", "4242", "add 10.9.9.9/32 dev lo", "del 10.9.9.9/32 dev lo" },
	{ "fd00::9", "0", "add fd00::9/128 dev lo", "del fd00::9/128 dev lo" },
	{ "fd00::9", "4242", "add fd00::9/128 dev lo", "del fd00::9/128 dev lo" },
};

/* As a VIP that moves to another host, and comes back. */
Test(relisten, a_listener_whose_address_has_left_the_host_listens_there_when_it_is_back)
{
	size_t i;

	for (i = 0; i < sizeof(leaving) / sizeof(leaving[0]); i++) {
		struct plain_group group;
		struct endpoint endpoint;
		int client, freebind = -1;
		socklen_t bytes = sizeof(freebind);

		run_ip(leaving[i].add);
		plain_group_init(&group, leaving[i].address, leaving[i].port);
		plain_group_add(&group, PLAIN_BACKLOG);
		run_ip(leaving[i].remove);
		relisten(group.listeners[0], leaving[i].add);
		cr_assert_eq(endpoint_of_socket(group.listeners[0], &endpoint), 0);
		cr_expect_arr_eq(&endpoint, &group.endpoint, sizeof(endpoint), "%s",
				 leaving[i].add);
		cr_assert_eq(getsockopt(group.listeners[0], IPPROTO_IP, IP_FREEBIND, &freebind,
					&bytes),
			     0);
		cr_expect_eq(freebind, 0, "%s", leaving[i].add);
		run_ip(leaving[i].add);
		client = client_open(&group.endpoint);
		cr_expect_eq(queued_on(group.listeners[0]), 1, "%s", leaving[i].add);
		close(client);
		plain_group_done(&group);
		run_ip(leaving[i].remove);
	}
}

/* Inherited from a shell with trap '' CHLD: the kernel reaps children itself. */
Test(relisten, a_process_that_ignores_the_end_of_children_is_told_how_it_went)
{
	struct plain_group group;

	cr_assert_neq(signal(SIGCHLD, SIG_IGN), SIG_ERR);
	plain_group_init(&group, "127.0.0.1", "0");
	plain_group_add(&group, PLAIN_BACKLOG);
	relisten(group.listeners[0], "SIGCHLD is ignored");
	cr_assert_neq(signal(SIGCHLD, SIG_DFL), SIG_ERR);
	plain_group_done(&group);
}
