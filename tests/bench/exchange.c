/* SPDX-License-Identifier: GPL-2.0-only */
#include "exchange.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC 1000000000ULL

uint64_t now_ns(void)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

int poller_wait(int epoll_fd, struct epoll_event *ret_events, int nr_max, uint64_t timeout_ns)
{
	struct timespec timeout = {
		.tv_sec = (time_t)(timeout_ns / NSEC_PER_SEC),
		.tv_nsec = (long)(timeout_ns % NSEC_PER_SEC),
	};
	int nr = epoll_pwait2(epoll_fd, ret_events, nr_max, &timeout, NULL);

	if (nr < 0)
		return errno == EINTR ? 0 : -errno;
	return nr;
}

static int watch(struct exchange *exchange, int epoll_fd, int operation)
{
	struct epoll_event event = {
		.events = exchange->state == EXCHANGE_SENDING ? EPOLLOUT : EPOLLIN,
		.data.ptr = exchange,
	};

	return epoll_ctl(epoll_fd, operation, exchange->fd, &event) ? -errno : 0;
}

/* -EAGAIN: the connection is not there yet, or its buffer is full. */
static int send_request(struct exchange *exchange)
{
	while (exchange->nr_sent < exchange->nr_request_bytes) {
		ssize_t nr = send(exchange->fd, exchange->request + exchange->nr_sent,
				  exchange->nr_request_bytes - exchange->nr_sent, MSG_NOSIGNAL);

		if (nr >= 0)
			exchange->nr_sent += (size_t)nr;
		else if (errno != EINTR)
			return -errno;
	}
	exchange->state = EXCHANGE_RECEIVING;
	return 0;
}

int exchange_begin(struct exchange *exchange, struct target *target, int epoll_fd,
		   const char *request, size_t nr_request_bytes)
{
	int err = target_connect(target, &exchange->fd);

	if (err) {
		exchange->fd = -1;
		return err;
	}
	exchange->state = EXCHANGE_SENDING;
	exchange->request = request;
	exchange->nr_request_bytes = nr_request_bytes;
	exchange->nr_sent = 0;
	exchange->nr_received = 0;
	/* On loopback the handshake is over by now, and the first wait can be for the answer. */
	err = send_request(exchange);
	if (!err || err == -EAGAIN)
		err = watch(exchange, epoll_fd, EPOLL_CTL_ADD);
	if (err)
		exchange_done(exchange, epoll_fd);
	return err;
}

static int read_answer(struct exchange *exchange)
{
	ssize_t length;

	exchange->answer[exchange->nr_received] = '\0';
	length = answer_parse(exchange->answer, exchange->nr_received, &exchange->facts);
	if (length < 0)
		return (int)length;
	if (!length)
		return 0;
	if (exchange->facts.status != 200)
		return -EBADMSG;
	exchange->state = EXCHANGE_ANSWERED;
	return 0;
}

static int receive(struct exchange *exchange)
{
	size_t nr_free = sizeof(exchange->answer) - 1 - exchange->nr_received;
	ssize_t nr;

	if (!nr_free)
		return -EMSGSIZE;
	nr = recv(exchange->fd, exchange->answer + exchange->nr_received, nr_free, 0);
	if (nr < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (!nr && exchange->state == EXCHANGE_RECEIVING)
		return -ENODATA;
	if (!nr) {
		exchange->state = EXCHANGE_CLOSED;
		return 0;
	}
	exchange->nr_received += (size_t)nr;
	return exchange->state == EXCHANGE_RECEIVING ? read_answer(exchange) : 0;
}

int exchange_advance(struct exchange *exchange, int epoll_fd)
{
	int err;

	if (exchange->state != EXCHANGE_SENDING)
		return receive(exchange);
	err = send_request(exchange);
	if (err == -EAGAIN)
		return 0;
	return err ? err : watch(exchange, epoll_fd, EPOLL_CTL_MOD);
}

/*
 * Closing alone removes it only when nobody else refers to the file at that moment, and whoever looks at
 * the descriptors of all processes, as socksteer does, refers to it for an instant (epoll(7)). Until
 * then its events would go on to come.
 */
void exchange_done(struct exchange *exchange, int epoll_fd)
{
	if (exchange->fd >= 0) {
		epoll_ctl(epoll_fd, EPOLL_CTL_DEL, exchange->fd, NULL);
		close(exchange->fd);
	}
	exchange->fd = -1;
}
