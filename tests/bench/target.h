/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * target: the address that a load goes to, and the addresses it comes from. A client address has
 * about 28,000 ports; with several on loopback a run does not end because of that.
 */
#ifndef BENCH_TARGET_H
#define BENCH_TARGET_H

#include <stdbool.h>
#include <sys/socket.h>

/* 127.0.0.1 to 127.0.0.250. */
#define TARGET_SOURCES_MAX 250

struct target {
	struct sockaddr_storage address;
	socklen_t nr_address_bytes;
	unsigned int nr_sources; /* 0: the kernel chooses the address of the client. */
	unsigned int next_source;
};

/* ADDR:PORT or [V6]:PORT. -EINVAL when it is neither. */
int target_parse(const char *text, struct target *ret_target);

bool target_is_loopback_v4(const struct target *target);

/* Begins a connection. The descriptor is nonblocking and may not be connected yet. */
int target_connect(struct target *target, int *ret_fd);

#endif
