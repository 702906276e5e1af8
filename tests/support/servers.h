/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * servers: epoll-worker, the plain server whose workers the tests steer, as a child process. It and
 * its workers end with the test, however that ends.
 */
#ifndef SUPPORT_SERVERS_H
#define SUPPORT_SERVERS_H

#include "worker/listener.h"

#include <stddef.h>
#include <sys/types.h>

/* Workers of one server. More than any test starts. */
#define SERVERS_MAX 512

struct servers {
	pid_t pid; /* the process that started the workers; 0 when it was stopped */
	struct endpoint endpoint; /* where they listen */
	size_t nr_workers;
	pid_t pids[SERVERS_MAX]; /* by worker number */
};

/*
 * Starts epoll-worker and returns when all its workers listen. On a free port of 127.0.0.1 unless
 * the arguments, a list of strings that ends with NULL, say something else.
 */
void servers_start_list(struct servers *servers, const char *const *arguments);
#define servers_start(servers, ...)                                                                \
	servers_start_list(servers, (const char *const[]){ __VA_ARGS__, NULL })

/* Ends it and all its workers, and waits for that. */
void servers_stop(struct servers *servers);

/* Ends one worker with this signal. Its server lives on. */
void servers_kill(const struct servers *servers, size_t worker, int signal_number);

/* The worker with this pid, or nr_workers if it is none of them. */
size_t servers_find(const struct servers *servers, pid_t pid);

#endif
