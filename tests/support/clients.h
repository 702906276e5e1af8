/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * clients: connections to a server, held or short. Every wait in here has a deadline.
 *
 * "hold" connects and reads one answer: the connection is then accepted and counted, and who serves
 * it is known. "connect" does not ask: for servers that do not answer.
 */
#ifndef SUPPORT_CLIENTS_H
#define SUPPORT_CLIENTS_H

#include "base/cleanup.h"
#include "worker/listener.h"

#include <stddef.h>
#include <sys/types.h>

/* For clients_close(), instead of a worker. */
#define EVERY_WORKER ((size_t)-1)

struct client {
	int fd;
	size_t worker; /* number of the worker that answered */
	pid_t pid; /* and its process */
};

struct clients {
	struct client *items; /* owned, in the order in which they came */
	size_t nr;
};

/* Closes all and frees the list; for CLEANUP(). */
void clients_done(struct clients *clients);

/* How a short connection ends. */
enum client_end {
	END_CLIENT_FIRST, /* an answer is read, the client closes */
	END_WORKER_FIRST, /* an answer is read, the worker closes */
	END_RESET, /* an answer is read, the client resets */
	END_UNASKED, /* the client closes at once */
};

/* Adds nr connections, one after another. */
void clients_hold(struct clients *clients, const struct endpoint *to, size_t nr);
void clients_connect(struct clients *clients, const struct endpoint *to, size_t nr);

/* Adds nr connections, held, from this many threads at once. */
void clients_hold_at_once(struct clients *clients, const struct endpoint *to, size_t nr,
			  size_t nr_threads);

/* One short connection. 0 or -errno; asserts nothing, so that threads may call it. */
int client_visit(const struct endpoint *to, enum client_end end);

/* Opens and ends nr short connections from this many threads at once. */
void clients_visit(const struct endpoint *to, size_t nr, size_t nr_threads, enum client_end end);

/* Sends a request for this path, and reads the answer to it. 0 or -errno. */
int client_send(const struct client *client, const char *path);
int client_receive(struct client *client);

/* Closes the connections that a worker serves, or all. Closed ones leave the list. */
void clients_close(struct clients *clients, size_t worker);

/* How many of these connections the worker with this number serves. */
size_t clients_of_worker(const struct clients *clients, size_t worker);

/* How many does the worker with the most, and the one with the fewest, out of nr_workers? */
size_t clients_most(const struct clients *clients, size_t nr_workers);
size_t clients_fewest(const struct clients *clients, size_t nr_workers);

#endif
