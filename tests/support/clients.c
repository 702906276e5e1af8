/* SPDX-License-Identifier: GPL-2.0-only */
#include "support/clients.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

/* An answer of epoll-worker, headers included. */
#define ANSWER_BYTES 512

#define THREADS_MAX 16

/* What one thread of several does. */
struct visit {
	pthread_t thread;
	const struct endpoint *to;
	struct client *items; /* where held connections go, NULL for short ones */
	size_t nr;
	enum client_end end;
	int err;
};

static int client_open(const struct endpoint *to, struct client *ret_client)
{
	const struct timeval deadline = { .tv_sec = DEADLINE_MS / 1000 };
	int fd CLEANUP(cleanup_fd) = socket(to->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &deadline, sizeof(deadline)))
		return -errno;
	if (connect(fd, (const struct sockaddr *)&to->address, to->nr_address_bytes))
		return -errno;
	*ret_client = (struct client){ .fd = TAKE_FD(fd), .worker = EVERY_WORKER };
	return 0;
}

static void client_close(struct client *client)
{
	cleanup_fd(&client->fd);
	client->fd = -1;
}

static int send_request(int fd, const char *path, const char *header)
{
	char request[256];
	int length = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: test\r\n%s\r\n",
			      path, header);

	if (send(fd, request, (size_t)length, MSG_NOSIGNAL) != length)
		return -errno;
	return 0;
}

int client_send(const struct client *client, const char *path)
{
	return send_request(client->fd, path, "");
}

/* The body ends the answer: "worker 3 pid 4211", and a line feed. */
static bool answer_parse(const char *answer, struct client *client)
{
	const char *body = strstr(answer, "\r\n\r\n");
	char end = '\0';

	return body &&
	       sscanf(body, " worker %zu pid %d%c", &client->worker, &client->pid, &end) == 3 &&
	       end == '\n';
}

int client_receive(struct client *client)
{
	char answer[ANSWER_BYTES] = "";
	size_t used = 0;

	while (!answer_parse(answer, client)) {
		ssize_t length = recv(client->fd, answer + used, sizeof(answer) - 1 - used, 0);

		if (length < 0)
			return -errno;
		if (!length)
			return -EPIPE;
		used += (size_t)length;
		answer[used] = '\0';
	}
	return 0;
}

static int client_hold(const struct endpoint *to, struct client *ret_client)
{
	int err;

	*ret_client = (struct client){ .fd = -1 };
	err = client_open(to, ret_client);
	if (!err)
		err = client_send(ret_client, "/hold");
	return err ? err : client_receive(ret_client);
}

/* Waits for the worker to close. */
static int await_end(int fd)
{
	char byte;
	ssize_t length = recv(fd, &byte, 1, 0);

	if (length < 0)
		return -errno;
	return length ? -EPROTO : 0;
}

static int client_ask_and_end(struct client *client, enum client_end end)
{
	const struct linger reset = { .l_onoff = 1 };
	int err = send_request(client->fd, "/",
			       end == END_WORKER_FIRST ? "Connection: close\r\n" : "");

	if (!err)
		err = client_receive(client);
	if (!err && end == END_WORKER_FIRST)
		err = await_end(client->fd);
	if (!err && end == END_RESET &&
	    setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)))
		err = -errno;
	return err;
}

int client_visit(const struct endpoint *to, enum client_end end)
{
	struct client client = { .fd = -1 };
	int err = client_open(to, &client);

	if (!err && end != END_UNASKED)
		err = client_ask_and_end(&client, end);
	client_close(&client);
	return err;
}

/* Runs in threads of its own, where nothing may be asserted. */
static void *visit_run(void *argument)
{
	struct visit *visit = argument;
	size_t i;

	for (i = 0; i < visit->nr && !visit->err; i++)
		visit->err = visit->items ? client_hold(visit->to, &visit->items[i]) :
					    client_visit(visit->to, visit->end);
	return NULL;
}

static void run_at_once(const struct visit *all, size_t nr_threads)
{
	struct visit visits[THREADS_MAX];
	size_t i, done = 0;

	cr_assert_leq(nr_threads, (size_t)THREADS_MAX);
	for (i = 0; i < nr_threads; i++) {
		visits[i] = *all;
		visits[i].nr = all->nr / nr_threads + (i < all->nr % nr_threads);
		visits[i].items = all->items ? all->items + done : NULL;
		done += visits[i].nr;
		cr_assert_eq(pthread_create(&visits[i].thread, NULL, visit_run, &visits[i]), 0);
	}
	for (i = 0; i < nr_threads; i++)
		cr_assert_eq(pthread_join(visits[i].thread, NULL), 0);
	for (i = 0; i < nr_threads; i++)
		cr_assert_eq(visits[i].err, 0, "client: %s", strerror(-visits[i].err));
}

/* Makes room for nr more and returns where they go. */
static struct client *clients_grow(struct clients *clients, size_t nr)
{
	struct client *items = reallocarray(clients->items, clients->nr + nr, sizeof(*items));

	cr_assert_not_null(items);
	clients->items = items;
	clients->nr += nr;
	return items + clients->nr - nr;
}

void clients_hold_at_once(struct clients *clients, const struct endpoint *to, size_t nr,
			  size_t nr_threads)
{
	struct visit all = { .to = to, .items = clients_grow(clients, nr), .nr = nr };

	run_at_once(&all, nr_threads);
}

void clients_visit(const struct endpoint *to, size_t nr, size_t nr_threads, enum client_end end)
{
	struct visit all = { .to = to, .nr = nr, .end = end };

	run_at_once(&all, nr_threads);
}

void clients_hold(struct clients *clients, const struct endpoint *to, size_t nr)
{
	struct client *items = clients_grow(clients, nr);
	size_t i;
	int err;

	for (i = 0; i < nr; i++) {
		err = client_hold(to, &items[i]);
		cr_assert_eq(err, 0, "client %zu: %s", i, strerror(-err));
	}
}

void clients_connect(struct clients *clients, const struct endpoint *to, size_t nr)
{
	struct client *items = clients_grow(clients, nr);
	size_t i;
	int err;

	for (i = 0; i < nr; i++) {
		err = client_open(to, &items[i]);
		cr_assert_eq(err, 0, "client %zu: %s", i, strerror(-err));
	}
}

void clients_close(struct clients *clients, size_t worker)
{
	size_t i, kept = 0;

	for (i = 0; i < clients->nr; i++) {
		if (worker != EVERY_WORKER && clients->items[i].worker != worker)
			clients->items[kept++] = clients->items[i];
		else
			client_close(&clients->items[i]);
	}
	clients->nr = kept;
	if (kept)
		return;
	free(clients->items);
	clients->items = NULL;
}

void clients_done(struct clients *clients)
{
	clients_close(clients, EVERY_WORKER);
}

size_t clients_of_worker(const struct clients *clients, size_t worker)
{
	size_t i, count = 0;

	for (i = 0; i < clients->nr; i++)
		count += clients->items[i].worker == worker;
	return count;
}

size_t clients_most(const struct clients *clients, size_t nr_workers)
{
	size_t worker, most = 0;

	for (worker = 0; worker < nr_workers; worker++) {
		size_t count = clients_of_worker(clients, worker);

		if (count > most)
			most = count;
	}
	return most;
}

size_t clients_fewest(const struct clients *clients, size_t nr_workers)
{
	size_t worker, fewest = clients->nr;

	for (worker = 0; worker < nr_workers; worker++) {
		size_t count = clients_of_worker(clients, worker);

		if (count < fewest)
			fewest = count;
	}
	return fewest;
}
