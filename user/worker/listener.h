/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * listener: addresses and listening sockets. Every descriptor that it returns belongs to the
 * caller. The caller says whether a listener shares its port (SO_REUSEPORT) and speaks MPTCP.
 */
#ifndef WORKER_LISTENER_H
#define WORKER_LISTENER_H

#include <stdbool.h>
#include <sys/socket.h>

/* "[", the longest IPv6 address with a scope, "]:65535", and the end. */
#define ENDPOINT_TEXT_BYTES 80

struct endpoint {
	struct sockaddr_storage address;
	socklen_t nr_address_bytes;
};

struct listener_kind {
	bool has_reuseport;
	bool has_mptcp;
	bool is_nonblocking;
};

/* -EINVAL: @address is no numeric IPv4 or IPv6 address. */
int endpoint_parse(const char *address, const char *port, struct endpoint *ret_endpoint);

/* 127.0.0.1:80 or [::1]:80. */
void endpoint_format(const struct endpoint *endpoint, char ret_text[ENDPOINT_TEXT_BYTES]);

/* The address that @fd is bound to: with port 0, this is where the kernel's choice is read. */
int endpoint_of_socket(int fd, struct endpoint *ret_endpoint);

/*
 * A socket bound to @endpoint that does not listen. It holds a port and, as the kernel adds a
 * socket to its reuseport group only when it listens, never receives a connection.
 */
int listener_bind(const struct endpoint *endpoint, struct listener_kind kind, int *ret_fd);

int listener_open(const struct endpoint *endpoint, struct listener_kind kind, int backlog,
		  int *ret_fd);

#endif
