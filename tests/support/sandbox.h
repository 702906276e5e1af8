/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sandbox: a world of its own for one test. Criterion runs each test in its own process; that
 * process gets a network namespace with lo up, and a bpffs that ends with it, so tests run side by
 * side, and beside a machine that is being steered. Nothing has to be cleaned up.
 */
#ifndef SUPPORT_SANDBOX_H
#define SUPPORT_SANDBOX_H

#include <stdint.h>

/* For Criterion's .timeout, in seconds: bounds a test that hangs, says nothing about its speed. */
#define TEST_SECONDS 120

/*
 * Moves the calling process into a sandbox; for .init of a suite. Skips the test when rights are
 * missing.
 */
void sandbox_enter(void);

/*
 * The same with a short list of the kernel's names, which an attach reads several times: that is
 * half of its time. For suites where it makes no difference.
 */
void quick_sandbox_enter(void);

/* A network namespace. */
struct network {
	int fd; /* owned */
	uint32_t inode; /* its number, as in the output of list */
};

/* The one that the calling thread is in. */
void network_current(struct network *ret_network);

/* A new one, with lo up. The calling thread stays where it is. */
void network_new(struct network *ret_network);

/* What the calling thread opens, and the processes that it starts, are in there from now on. */
void network_enter(const struct network *network);
void network_done(struct network *network);

/* Writes a file below /proc/sys, such as "net/ipv4/tcp_syncookies", of the current network. */
void sysctl_write(const char *name, const char *value);

/* A counter of /proc/net/netstat of the current network, such as "ListenOverflows". */
uint64_t netstat_read(const char *name);

#endif
