/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/relisten.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* A child needs some 50 us; a machine that gives it no CPU for so long is taken for a child that hangs. */
#define CHILD_DEADLINE_NS 1000000000ull

/* How often listen() is tried, and the pause between, which covers a conflict that goes by. */
#define LISTEN_TRIES 20
#define LISTEN_PAUSE_MS 50

/* Linux 6.15 and later; older headers lack them, and older kernels have no such option to reset. */
#ifndef TCP_RTO_MIN_US
#define TCP_RTO_MIN_US 45
#endif
#ifndef TCP_DELACK_MAX_US
#define TCP_DELACK_MAX_US 46
#endif

/*
 * What tcp_disconnect() (net/ipv4/tcp.c) resets of what can be set on a listener and goes over to its
 * connections; the last is reset by listen() (inet_csk_listen_start). All are ints.
 */
static const struct {
	int level;
	int name;
} reset_options[] = {
	{ SOL_SOCKET, SO_PEEK_OFF },	    { IPPROTO_TCP, TCP_MAXSEG },
	{ IPPROTO_TCP, TCP_WINDOW_CLAMP },  { IPPROTO_TCP, TCP_RTO_MIN_US },
	{ IPPROTO_TCP, TCP_DELACK_MAX_US }, { IPPROTO_TCP, TCP_QUICKACK },
};

#define NR_RESET_OPTIONS (sizeof(reset_options) / sizeof(reset_options[0]))

_Static_assert(NR_RESET_OPTIONS <= MAX_KEPT_OPTIONS, "struct relisten has room for all");

static bool option_read(int fd, size_t option, int *ret_value)
{
	socklen_t bytes = sizeof(*ret_value);

	return !getsockopt(fd, reset_options[option].level, reset_options[option].name, ret_value,
			   &bytes);
}

bool listener_listens(int fd)
{
	socklen_t bytes = sizeof(int);
	int listens = 0;

	return !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) && listens;
}

/* Of a listener, TCP_INFO tells these two in fields that are named for a connection's. */
void listener_read_counts(int fd, uint32_t *ret_queued, uint32_t *ret_backlog)
{
	struct tcp_info info = {};
	socklen_t bytes = sizeof(info);

	*ret_queued = *ret_backlog = 0;
	if (!listener_listens(fd) || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes))
		return;
	*ret_queued = info.tcpi_unacked;
	*ret_backlog = info.tcpi_sacked;
}

int relisten_prepare(int fd, struct relisten *ret_relisten)
{
	struct relisten relisten = { .address_bytes = sizeof(relisten.address) };
	uint32_t queued;
	size_t i;

	if (!listener_listens(fd))
		return -ENOTCONN;
	if (getsockname(fd, (struct sockaddr *)&relisten.address, &relisten.address_bytes))
		return -errno;
	listener_read_counts(fd, &queued, &relisten.backlog);
	for (i = 0; i < NR_RESET_OPTIONS; i++)
		relisten.is_kept[i] = option_read(fd, i, &relisten.kept[i]);
	*ret_relisten = relisten;
	return 0;
}

/*
 * An option that was never set reads as a default, which is not the same when it is set: so only what has
 * changed is set again. A TCP_MAXSEG of exactly the default, 536, looks as if it was never set.
 */
static void restore_options(int fd, const struct relisten *relisten)
{
	size_t i;
	int now;

	for (i = 0; i < NR_RESET_OPTIONS; i++)
		if (relisten->is_kept[i] && option_read(fd, i, &now) && now != relisten->kept[i])
			setsockopt(fd, reset_options[i].level, reset_options[i].name,
				   &relisten->kept[i], sizeof(relisten->kept[i]));
}

/*
 * bind() refuses an address that has left the host, and the listener goes on without it, as it would have
 * if it had not been shut: the address may come back. A copy that is left with IP_FREEBIND, because its
 * maker is killed right here, listens like any other.
 */
static int bind_anyway(int fd, const struct relisten *relisten)
{
	bool is_ipv6 = relisten->address.ss_family == AF_INET6;
	int level = is_ipv6 ? IPPROTO_IPV6 : IPPROTO_IP;
	int name = is_ipv6 ? IPV6_FREEBIND : IP_FREEBIND;
	const int on = 1, off = 0;
	int err = 0;

	/* Where it was set already, bind() has not failed for that. */
	setsockopt(fd, level, name, &on, sizeof(on));
	if (bind(fd, (const struct sockaddr *)&relisten->address, relisten->address_bytes))
		err = -errno;
	setsockopt(fd, level, name, &off, sizeof(off));
	return err;
}

/* Ports are in the same place in both families. */
static bool has_port_of(int fd, const struct relisten *relisten)
{
	struct sockaddr_in6 now = {};
	socklen_t bytes = sizeof(now);

	return !getsockname(fd, (struct sockaddr *)&now, &bytes) &&
	       now.sin6_port == ((const struct sockaddr_in6 *)&relisten->address)->sin6_port;
}

/*
 * bind() is for a listener whose port the kernel chose: such a port is given back by the shutdown
 * (SOCK_BINDPORT_LOCK is not set), and listen() would choose another. Nothing tells which listeners these
 * are: getsockname() shows the old port all the same. Elsewhere the socket is bound, and bind() fails with
 * EINVAL, or with something else that is looked at before, such as the right to a low port or a hook of
 * the cgroup. So listen() is tried whatever it says, and the port tells how it went.
 */
static int listen_as_before(int fd, const struct relisten *relisten)
{
	int err = 0;

	restore_options(fd, relisten);
	if (bind(fd, (const struct sockaddr *)&relisten->address, relisten->address_bytes))
		err = errno == EADDRNOTAVAIL ? bind_anyway(fd, relisten) : -errno;
	if (listen(fd, (int)relisten->backlog))
		return -errno;
	if (has_port_of(fd, relisten))
		return 0;
	/* At another port it is of no use to anyone, and is not tried again. */
	shutdown(fd, SHUT_RDWR);
	return err ? err : -EADDRNOTAVAIL;
}

/* In the child: nothing but calls that are safe after a fork of a process with threads. */
static int stop_and_listen(int fd, const struct relisten *relisten)
{
	if (shutdown(fd, SHUT_RDWR))
		return -errno;
	return listen_as_before(fd, relisten);
}

int relisten_finish(int fd, const struct relisten *relisten)
{
	int err = listener_listens(fd) ? 0 : listen_as_before(fd, relisten);

	return listener_listens(fd) ? 0 : err;
}

static int finish_patiently(int fd, const struct relisten *relisten)
{
	int tries, err = relisten_finish(fd, relisten);

	for (tries = 1; tries < LISTEN_TRIES && err; tries++) {
		poll(NULL, 0, LISTEN_PAUSE_MS);
		err = relisten_finish(fd, relisten);
	}
	return err;
}

/* Waits for a child of ours, and ends it if it takes too long. */
static int await_child(pid_t child)
{
	int process CLEANUP(cleanup_fd) = (int)syscall(SYS_pidfd_open, child, 0);
	struct pollfd ends = { .fd = process, .events = POLLIN };
	uint64_t deadline_ns = clock_now_ns() + CHILD_DEADLINE_NS;
	int status = 0;
	pid_t ended = 0;

	while (!ended && clock_now_ns() < deadline_ns) {
		/* Without the descriptor this is a pause of one millisecond. */
		poll(&ends, 1, process >= 0 ? (int)(CHILD_DEADLINE_NS / 1000000) : 1);
		ended = waitpid(child, &status, WNOHANG | __WALL);
	}
	if (!ended) {
		kill(child, SIGKILL);
		ended = waitpid(child, &status, __WALL);
	}
	if (ended != child || !WIFEXITED(status))
		return -ECHILD;
	return -WEXITSTATUS(status);
}

/*
 * fork(), but without a signal when the child ends. The kernel reaps a child whose end is told by SIGCHLD
 * by itself if that signal is ignored, which is inherited ("trap '' CHLD"), and then nobody can wait for
 * it. The child makes system calls only, so it needs nothing of what the C library does after a fork.
 */
static pid_t fork_silently(void)
{
	return (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
}

static int run_child(int fd, const struct relisten *relisten)
{
	pid_t child = fork_silently();

	if (child < 0)
		return -errno;
	/* An errno fits into an exit status. */
	if (!child)
		_exit(-stop_and_listen(fd, relisten));
	return await_child(child);
}

int relisten_run(int fd, const struct relisten *relisten)
{
	sigset_t all, before;
	int err, finish_err;
	bool was_shut;

	/* A signal to the process group, such as Ctrl-C, must not end the child between its two calls. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = run_child(fd, relisten);
	was_shut = !listener_listens(fd);
	finish_err = finish_patiently(fd, relisten);
	restore_options(fd, relisten);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	/* Where the child left it shut, it was the parent that did the other half. */
	return finish_err || was_shut ? finish_err : err;
}

/*
 * A listener has no sending side, so this only runs the wake-up at the end of inet_shutdown()
 * (net/ipv4/af_inet.c). An event loop that finds nothing in the queue waits on, as does accept().
 */
void listener_wake(int fd)
{
	if (listener_listens(fd))
		shutdown(fd, SHUT_WR);
}
