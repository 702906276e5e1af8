/* SPDX-License-Identifier: GPL-2.0-only */
#include "daemon/loopback.h"
#include "base/cleanup.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

/* Who comes while one look is under way. There are never many who look. */
#define BACKLOG 16

static bool is_loopback(const struct loopback *loopback)
{
	if (loopback->family == AF_INET)
		return loopback->address[0] == 127;
	return !memcmp(loopback->address, &in6addr_loopback, sizeof(in6addr_loopback));
}

int loopback_parse(const char *text, struct loopback *ret_loopback)
{
	const char *colon = strrchr(text, ':');
	struct loopback loopback = {};
	uint64_t port;
	int err;

	if (!colon || text_to_u64(colon + 1, 0, UINT16_MAX, &port))
		return -EINVAL;
	loopback.port = (uint32_t)port;
	err = text_to_address(text, (size_t)(colon - text), &loopback.family, loopback.address);
	if (err)
		return err;
	if (!is_loopback(&loopback))
		return -EPERM;
	*ret_loopback = loopback;
	return 0;
}

union socket_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t fill_address(const struct loopback *loopback, union socket_address *ret_address)
{
	*ret_address = (union socket_address){};
	if (loopback->family == AF_INET) {
		ret_address->v4.sin_family = AF_INET;
		ret_address->v4.sin_port = htons((uint16_t)loopback->port);
		memcpy(&ret_address->v4.sin_addr, loopback->address, sizeof(struct in_addr));
		return sizeof(ret_address->v4);
	}
	ret_address->v6.sin6_family = AF_INET6;
	ret_address->v6.sin6_port = htons((uint16_t)loopback->port);
	memcpy(&ret_address->v6.sin6_addr, loopback->address, sizeof(struct in6_addr));
	return sizeof(ret_address->v6);
}

static int read_port(int fd, uint32_t *ret_port)
{
	union socket_address address = {};
	socklen_t size = sizeof(address);

	if (getsockname(fd, &address.any, &size))
		return -errno;
	*ret_port = ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port :
							     address.v6.sin6_port);
	return 0;
}

int loopback_listen(const struct loopback *loopback, int *ret_fd, uint32_t *ret_port)
{
	int fd CLEANUP(cleanup_fd) = -1;
	union socket_address address;
	socklen_t size = fill_address(loopback, &address);
	int on = 1, err;

	fd = socket((int)loopback->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* A restart must not wait for the connections of the last run to leave TIME_WAIT. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, &address.any, size) || listen(fd, BACKLOG))
		return -errno;
	err = read_port(fd, ret_port);
	if (!err)
		*ret_fd = TAKE_FD(fd);
	return err;
}
