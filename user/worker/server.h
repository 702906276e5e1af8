/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * server: the event loop of one worker. Owns an epoll instance and the connections in it; the
 * listener belongs to the caller, who may share it between servers.
 */
#ifndef WORKER_SERVER_H
#define WORKER_SERVER_H

#include "connection.h"

struct server {
	int listener_fd;
	int epoll_fd;
	bool has_shared_listener; /* Others wait for the same listener. */
	bool is_accepting; /* The listener is in the epoll set. */
	struct connection *connections; /* All that were ever needed, used again and again. */
	struct connection *free_connections;
	struct answers answers;
};

/* The listener is watched when this returns 0. Undone by server_done(). */
int server_init(struct server *server, int listener_fd, bool has_shared_listener,
		unsigned int number, int pid);
void server_done(struct server *server);

/* Serves for good; returns only with an error, such as -EBADF. */
int server_run(struct server *server);

/* The same without epoll: accepts, and serves one connection until it ends. */
int server_run_blocking(int listener_fd, unsigned int number, int pid);

#endif
