/* SPDX-License-Identifier: GPL-2.0-only */
#include "connection.h"

#include "work.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* How much of a refused request is thrown away before its connection is cut off. */
#define LINGER_BYTES_MAX (256 * 1024)

static void answer_init(struct answer *answer, bool keep_alive, const char *body)
{
	ssize_t length =
		http_format_answer(200, keep_alive, body, answer->bytes, sizeof(answer->bytes));

	answer->nr_bytes = length < 0 ? 0 : (size_t)length;
}

void answers_init(struct answers *answers, unsigned int number, int pid)
{
	char body[HTTP_BODY_BYTES_MAX];

	snprintf(body, sizeof(body), "worker %u pid %d\n", number, pid);
	answer_init(&answers->keep, true, body);
	answer_init(&answers->close, false, body);
}

void connection_init(struct connection *connection, int fd)
{
	/* Not the buffers: clearing 9 KiB costs more than serving a request. */
	connection->fd = fd;
	connection->waits_for = CONNECTION_READ;
	connection->is_closing = false;
	connection->is_lingering = false;
	connection->nr_lingered_bytes = 0;
	connection->nr_in = 0;
	connection->nr_out = 0;
	connection->nr_sent = 0;
}

void connection_done(struct connection *connection)
{
	close(connection->fd);
	connection->fd = -1;
}

static void put_answer(struct connection *connection, const struct answer *answer)
{
	memcpy(connection->out + connection->nr_out, answer->bytes, answer->nr_bytes);
	connection->nr_out += answer->nr_bytes;
}

static void put_status(struct connection *connection, int status, bool keep_alive)
{
	char body[HTTP_BODY_BYTES_MAX];
	ssize_t length;

	snprintf(body, sizeof(body), "%d\n", status);
	length = http_format_answer(status, keep_alive, body, connection->out + connection->nr_out,
				    CONNECTION_OUT_BYTES - connection->nr_out);
	if (length > 0)
		connection->nr_out += (size_t)length;
}

static void serve(struct connection *connection, const struct http_request *request,
		  const struct answers *answers)
{
	work_do(request);
	if (request->action == HTTP_NOT_FOUND)
		put_status(connection, 404, request->keep_alive);
	else
		put_answer(connection, request->keep_alive ? &answers->keep : &answers->close);
	connection->is_closing = !request->keep_alive;
}

static void refuse(struct connection *connection, int err)
{
	put_status(connection, http_status_of_error(err), false);
	connection->is_closing = true;
	connection->is_lingering = true;
	connection->nr_in = 0;
}

static bool has_room_for_answer(const struct connection *connection)
{
	return CONNECTION_OUT_BYTES - connection->nr_out >= HTTP_ANSWER_BYTES_MAX;
}

/* Answers the complete requests in in[], as far as the answers fit into out[]. */
static void serve_requests(struct connection *connection, const struct answers *answers)
{
	size_t nr_used = 0;

	while (!connection->is_closing && has_room_for_answer(connection)) {
		struct http_request request;
		ssize_t length = http_parse_request(connection->in + nr_used,
						    connection->nr_in - nr_used, &request);

		if (length < 0) {
			refuse(connection, (int)length);
			return;
		}
		if (!length)
			break;
		nr_used += (size_t)length;
		serve(connection, &request, answers);
	}
	connection->nr_in -= nr_used;
	if (nr_used && connection->nr_in)
		memmove(connection->in, connection->in + nr_used, connection->nr_in);
}

/* Returns 0 when everything is sent, -EAGAIN when the client has to read first. */
static int send_answers(struct connection *connection)
{
	while (connection->nr_sent < connection->nr_out) {
		ssize_t nr = send(connection->fd, connection->out + connection->nr_sent,
				  connection->nr_out - connection->nr_sent, MSG_NOSIGNAL);

		if (nr >= 0)
			connection->nr_sent += (size_t)nr;
		else if (errno != EINTR)
			return -errno;
	}
	connection->nr_sent = 0;
	connection->nr_out = 0;
	return 0;
}

/*
 * Closing a socket that holds unread bytes makes the kernel send a reset, which can overtake the
 * answer. So the client is told that no more comes, and what it still sends is read first.
 */
static enum connection_wait begin_lingering(struct connection *connection)
{
	return shutdown(connection->fd, SHUT_WR) ? CONNECTION_END : CONNECTION_READ;
}

/* Alternates between answering and sending until one of the two has to wait. */
static enum connection_wait answer_and_send(struct connection *connection,
					    const struct answers *answers)
{
	do {
		int err;

		serve_requests(connection, answers);
		if (!connection->nr_out)
			return CONNECTION_READ;
		err = send_answers(connection);
		if (err == -EAGAIN)
			return CONNECTION_WRITE;
		if (err)
			return CONNECTION_END;
		if (connection->is_lingering)
			return begin_lingering(connection);
		if (connection->is_closing)
			return CONNECTION_END;
	} while (connection->nr_in);
	return CONNECTION_READ;
}

static ssize_t read_bytes(struct connection *connection)
{
	ssize_t nr;

	do {
		nr = recv(connection->fd, connection->in + connection->nr_in,
			  sizeof(connection->in) - connection->nr_in, 0);
	} while (nr < 0 && errno == EINTR);
	return nr < 0 ? -errno : nr;
}

static enum connection_wait linger(struct connection *connection)
{
	ssize_t nr = read_bytes(connection);

	if (nr == -EAGAIN)
		return CONNECTION_READ;
	if (nr <= 0)
		return CONNECTION_END;
	connection->nr_lingered_bytes += (size_t)nr;
	return connection->nr_lingered_bytes < LINGER_BYTES_MAX ? CONNECTION_READ : CONNECTION_END;
}

static enum connection_wait read_and_answer(struct connection *connection,
					    const struct answers *answers)
{
	ssize_t nr = read_bytes(connection);

	if (nr == -EAGAIN)
		return CONNECTION_READ;
	if (nr <= 0)
		return CONNECTION_END;
	connection->nr_in += (size_t)nr;
	return answer_and_send(connection, answers);
}

/* The client has made room: the rest of the answers first, then what they kept waiting. */
static enum connection_wait send_and_answer(struct connection *connection,
					    const struct answers *answers)
{
	int err = send_answers(connection);

	if (err == -EAGAIN)
		return CONNECTION_WRITE;
	if (err)
		return CONNECTION_END;
	if (connection->is_lingering)
		return begin_lingering(connection);
	if (connection->is_closing)
		return CONNECTION_END;
	return answer_and_send(connection, answers);
}

enum connection_wait connection_advance(struct connection *connection,
					const struct answers *answers)
{
	if (connection->waits_for == CONNECTION_WRITE)
		connection->waits_for = send_and_answer(connection, answers);
	else if (connection->is_lingering)
		connection->waits_for = linger(connection);
	else
		connection->waits_for = read_and_answer(connection, answers);
	return connection->waits_for;
}
