/* SPDX-License-Identifier: GPL-2.0-only */
#include "server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* A batch of events between two looks at the listener, as many as nginx takes. */
#define EVENTS_MAX 512

/* How long a worker without a free descriptor waits before it tries to accept again. */
#define ACCEPT_PAUSE_MS 100

/* Events carry their connection; those of the listener carry NULL. */
static int watch(struct server *server, int operation, int fd, uint32_t events, void *owner)
{
	struct epoll_event event = { .events = events, .data.ptr = owner };

	return epoll_ctl(server->epoll_fd, operation, fd, &event) ? -errno : 0;
}

static int accepting_resume(struct server *server)
{
	/* Of the workers that share a listener, one connection need not wake all. */
	uint32_t events = EPOLLIN | (server->has_shared_listener ? EPOLLEXCLUSIVE : 0);
	int err = watch(server, EPOLL_CTL_ADD, server->listener_fd, events, NULL);

	server->is_accepting = !err;
	return err;
}

/*
 * Without a free descriptor the listener stays readable, and the loop would turn as fast as it
 * can. It leaves the epoll set instead, until a connection closes or ACCEPT_PAUSE_MS are over.
 */
static void accepting_pause(struct server *server)
{
	if (!watch(server, EPOLL_CTL_DEL, server->listener_fd, 0, NULL))
		server->is_accepting = false;
}

static struct connection *connection_take(struct server *server)
{
	struct connection *connection = server->free_connections;

	if (connection) {
		server->free_connections = connection->next_free;
		return connection;
	}
	connection = malloc(sizeof(*connection));
	if (connection) {
		connection->next_allocated = server->connections;
		server->connections = connection;
	}
	return connection;
}

static void connection_give_back(struct server *server, struct connection *connection)
{
	connection->next_free = server->free_connections;
	server->free_connections = connection;
}

/* Takes over @fd. */
static int add_connection(struct server *server, int fd)
{
	struct connection *connection = connection_take(server);
	int err;

	if (!connection) {
		close(fd);
		return -ENOMEM;
	}
	connection_init(connection, fd);
	err = watch(server, EPOLL_CTL_ADD, fd, EPOLLIN, connection);
	if (err) {
		connection_done(connection);
		connection_give_back(server, connection);
	}
	return err;
}

/* Errors of one connection, which accept() reports in place of the connection (accept(2)). */
static bool is_lost_connection(int err)
{
	switch (err) {
	case ECONNABORTED:
	case EINTR:
	case EPROTO:
	case EPERM:
	case ENETDOWN:
	case ENETUNREACH:
	case EHOSTUNREACH:
	case EHOSTDOWN:
	case ENONET:
	case EOPNOTSUPP:
	case ETIMEDOUT:
		return true;
	default:
		return false;
	}
}

static bool is_shortage(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOBUFS || err == ENOMEM || err == ENOSPC;
}

static int accept_connections(struct server *server)
{
	for (;;) {
		int fd = accept4(server->listener_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		int err = fd < 0 ? -errno : add_connection(server, fd);

		if (!err || is_lost_connection(-err))
			continue;
		if (err == -EAGAIN)
			return 0;
		if (!is_shortage(-err))
			return err;
		accepting_pause(server);
		return 0;
	}
}

static void advance(struct server *server, struct connection *connection)
{
	enum connection_wait before = connection->waits_for;
	enum connection_wait now = connection_advance(connection, &server->answers);

	if (now != CONNECTION_END && now != before &&
	    watch(server, EPOLL_CTL_MOD, connection->fd,
		  now == CONNECTION_WRITE ? EPOLLOUT : EPOLLIN, connection))
		now = CONNECTION_END;
	if (now != CONNECTION_END)
		return;
	/*
	 * An epoll set forgets a descriptor by itself only when nobody else has a reference to the file, and
	 * a tool that looks at all files of the machine has one for a moment.
	 */
	epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, connection->fd, NULL);
	connection_done(connection);
	connection_give_back(server, connection);
	if (!server->is_accepting)
		accepting_resume(server);
}

int server_init(struct server *server, int listener_fd, bool has_shared_listener,
		unsigned int number, int pid)
{
	int err;

	*server = (struct server){
		.listener_fd = listener_fd,
		.has_shared_listener = has_shared_listener,
	};
	answers_init(&server->answers, number, pid);
	server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (server->epoll_fd < 0)
		return -errno;
	err = accepting_resume(server);
	if (err)
		server_done(server);
	return err;
}

void server_done(struct server *server)
{
	while (server->connections) {
		struct connection *connection = server->connections;

		server->connections = connection->next_allocated;
		free(connection);
	}
	if (server->epoll_fd >= 0)
		close(server->epoll_fd);
	server->epoll_fd = -1;
}

static int serve_events(struct server *server, const struct epoll_event *events, int nr)
{
	for (int i = 0; i < nr; i++) {
		if (events[i].data.ptr) {
			advance(server, events[i].data.ptr);
			continue;
		}
		int err = accept_connections(server);

		if (err)
			return err;
	}
	return 0;
}

int server_run(struct server *server)
{
	struct epoll_event events[EVENTS_MAX];
	int err = 0;

	while (!err) {
		int timeout_ms = server->is_accepting ? -1 : ACCEPT_PAUSE_MS;
		int nr = epoll_wait(server->epoll_fd, events, EVENTS_MAX, timeout_ms);

		if (nr < 0 && errno != EINTR)
			return -errno;
		if (!nr && !server->is_accepting)
			err = accepting_resume(server);
		else if (nr > 0)
			err = serve_events(server, events, nr);
	}
	return err;
}

int server_run_blocking(int listener_fd, unsigned int number, int pid)
{
	struct connection connection;
	struct answers answers;

	answers_init(&answers, number, pid);
	for (;;) {
		int fd = accept4(listener_fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0 && is_lost_connection(errno))
			continue;
		if (fd < 0)
			return -errno;
		connection_init(&connection, fd);
		while (connection_advance(&connection, &answers) != CONNECTION_END)
			;
		connection_done(&connection);
	}
}
