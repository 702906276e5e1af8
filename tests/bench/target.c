/* SPDX-License-Identifier: GPL-2.0-only */
#include "target.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Cuts ADDR:PORT or [V6]:PORT in two. */
static int split(const char *text, char *ret_address, size_t nr_bytes, const char **ret_port)
{
	const char *colon = strrchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : 0;

	if (length >= 2 && text[0] == '[' && text[length - 1] == ']') {
		text++;
		length -= 2;
	} else if (memchr(text, ':', length)) {
		return -EINVAL;
	}
	if (!length || length >= nr_bytes)
		return -EINVAL;
	memcpy(ret_address, text, length);
	ret_address[length] = '\0';
	*ret_port = colon + 1;
	return 0;
}

int target_parse(const char *text, struct target *ret_target)
{
	struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
		.ai_socktype = SOCK_STREAM,
	};
	struct addrinfo *found = NULL;
	struct target target = { 0 };
	char address[64];
	const char *port;

	if (split(text, address, sizeof(address), &port) ||
	    getaddrinfo(address, port, &hints, &found))
		return -EINVAL;
	memcpy(&target.address, found->ai_addr, found->ai_addrlen);
	target.nr_address_bytes = found->ai_addrlen;
	freeaddrinfo(found);
	*ret_target = target;
	return 0;
}

bool target_is_loopback_v4(const struct target *target)
{
	struct sockaddr_in v4;

	if (target->address.ss_family != AF_INET)
		return false;
	memcpy(&v4, &target->address, sizeof(v4));
	return ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* The port stays open until connect(), which then needs a free pair only, not a free port. */
static int bind_source(struct target *target, int fd)
{
	struct sockaddr_in source = { .sin_family = AF_INET };
	int on = 1;

	source.sin_addr.s_addr = htonl(INADDR_LOOPBACK + target->next_source);
	target->next_source = (target->next_source + 1) % target->nr_sources;
	if (setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)))
		return -errno;
	return bind(fd, (const struct sockaddr *)&source, sizeof(source)) ? -errno : 0;
}

int target_connect(struct target *target, int *ret_fd)
{
	int fd = socket(target->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (target->nr_sources)
		err = bind_source(target, fd);
	if (!err &&
	    connect(fd, (const struct sockaddr *)&target->address, target->nr_address_bytes))
		err = -errno;
	if (err && err != -EINPROGRESS) {
		close(fd);
		return err;
	}
	*ret_fd = fd;
	return 0;
}
