/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Addresses that only this machine can reach, and a socket that listens there. Nothing of the
 * daemon listens anywhere else, so whatever else somebody asks for is refused while it is read.
 */
#ifndef SOCKSTEER_DAEMON_LOOPBACK_H
#define SOCKSTEER_DAEMON_LOOPBACK_H

#include <stdint.h>

struct loopback {
	uint32_t family; /* AF_INET or AF_INET6 */
	uint8_t address[16]; /* network order; 127.0.0.0/8 or ::1 */
	uint32_t port; /* 0 for any that is free */
};

/* "127.0.0.1:9000" or "[::1]:9000". -EINVAL if it is none, -EPERM if it is not loopback. */
int loopback_parse(const char *text, struct loopback *ret_loopback);

/* A listening socket of the caller's, and in *ret_port the port that it got. -errno. */
int loopback_listen(const struct loopback *loopback, int *ret_fd, uint32_t *ret_port);

#endif
