/* SPDX-License-Identifier: GPL-2.0-only */
#include "listener.h"

#include "base/cleanup.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

int endpoint_parse(const char *address, const char *port, struct endpoint *ret_endpoint)
{
	struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
		.ai_socktype = SOCK_STREAM,
	};
	struct addrinfo *found = NULL;

	if (getaddrinfo(address, port, &hints, &found))
		return -EINVAL;
	memset(ret_endpoint, 0, sizeof(*ret_endpoint));
	memcpy(&ret_endpoint->address, found->ai_addr, found->ai_addrlen);
	ret_endpoint->nr_address_bytes = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

void endpoint_format(const struct endpoint *endpoint, char ret_text[ENDPOINT_TEXT_BYTES])
{
	bool is_v6 = endpoint->address.ss_family == AF_INET6;
	char address[ENDPOINT_TEXT_BYTES - 8] = "?";
	char port[6] = "?";

	getnameinfo((const struct sockaddr *)&endpoint->address, endpoint->nr_address_bytes,
		    address, sizeof(address), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(ret_text, ENDPOINT_TEXT_BYTES, is_v6 ? "[%s]:%s" : "%s:%s", address, port);
}

int endpoint_of_socket(int fd, struct endpoint *ret_endpoint)
{
	struct endpoint endpoint = { .nr_address_bytes = sizeof(endpoint.address) };

	if (getsockname(fd, (struct sockaddr *)&endpoint.address, &endpoint.nr_address_bytes))
		return -errno;
	*ret_endpoint = endpoint;
	return 0;
}

static int switch_on(int fd, int option)
{
	int on = 1;

	return setsockopt(fd, SOL_SOCKET, option, &on, sizeof(on)) ? -errno : 0;
}

int listener_bind(const struct endpoint *endpoint, struct listener_kind kind, int *ret_fd)
{
	int type = SOCK_STREAM | SOCK_CLOEXEC | (kind.is_nonblocking ? SOCK_NONBLOCK : 0);
	CLEANUP(cleanup_fd) int fd = -1;
	int err;

	fd = socket(endpoint->address.ss_family, type, kind.has_mptcp ? IPPROTO_MPTCP : 0);
	if (fd < 0)
		return -errno;
	/* A restart must not wait for the connections of the last run to leave TIME_WAIT. */
	err = switch_on(fd, SO_REUSEADDR);
	if (!err && kind.has_reuseport)
		err = switch_on(fd, SO_REUSEPORT);
	if (err)
		return err;
	if (bind(fd, (const struct sockaddr *)&endpoint->address, endpoint->nr_address_bytes))
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int listener_open(const struct endpoint *endpoint, struct listener_kind kind, int backlog,
		  int *ret_fd)
{
	CLEANUP(cleanup_fd) int fd = -1;
	int err = listener_bind(endpoint, kind, &fd);

	if (err)
		return err;
	if (listen(fd, backlog))
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}
