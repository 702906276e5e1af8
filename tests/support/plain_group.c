/* SPDX-License-Identifier: GPL-2.0-only */
#include "support/plain_group.h"
#include "base/cleanup.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static const struct listener_kind usual_kind = {
	.has_reuseport = true,
	.is_nonblocking = true,
};

void plain_group_init(struct plain_group *group, const char *address, const char *port)
{
	group->nr = 0;
	cr_assert_eq(endpoint_parse(address, port, &group->endpoint), 0, "%s %s", address, port);
}

void plain_group_done(struct plain_group *group)
{
	size_t i;

	for (i = 0; i < group->nr; i++)
		plain_group_close(group, i);
	group->nr = 0;
}

void plain_group_add_kind(struct plain_group *group, struct listener_kind kind, int backlog)
{
	int fd, err;

	cr_assert_lt(group->nr, (size_t)PLAIN_GROUP_MAX);
	err = listener_open(&group->endpoint, kind, backlog, &fd);
	cr_assert_eq(err, 0, "listener %zu: %s", group->nr, strerror(-err));
	cr_assert_eq(endpoint_of_socket(fd, &group->endpoint), 0);
	group->listeners[group->nr] = fd;
	group->epolls[group->nr++] = -1;
}

void plain_group_add(struct plain_group *group, int backlog)
{
	plain_group_add_kind(group, usual_kind, backlog);
}

static int epoll_watch(int epoll, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

void plain_group_watch(struct plain_group *group, size_t index)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	cr_assert(epoll >= 0, "epoll_create1: %s", strerror(errno));
	cr_assert_eq(epoll_watch(epoll, group->listeners[index]), 0);
	group->epolls[index] = epoll;
}

void plain_group_add_watched(struct plain_group *group, size_t nr, int backlog)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		plain_group_add(group, backlog);
		plain_group_watch(group, group->nr - 1);
	}
}

void plain_group_close(struct plain_group *group, size_t index)
{
	cleanup_fd(&group->listeners[index]);
	cleanup_fd(&group->epolls[index]);
	group->listeners[index] = -1;
	group->epolls[index] = -1;
}

int plain_group_accept(const struct plain_group *group, size_t index)
{
	int fd = accept4(group->listeners[index], NULL, NULL, SOCK_CLOEXEC);

	cr_assert(fd >= 0 || errno == EAGAIN, "accept4: %s", strerror(errno));
	return fd;
}

uint64_t socket_cookie(int fd)
{
	socklen_t length = sizeof(uint64_t);
	uint64_t cookie = 0;

	cr_assert_eq(getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &length), 0);
	return cookie;
}

/* In the child, where nothing may be asserted. */
static void hang(const struct endpoint *endpoint, int backlog, int report)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), fd = -1;

	if (prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0UL, 0UL, 0UL) || epoll < 0 ||
	    listener_open(endpoint, usual_kind, backlog, &fd) || epoll_watch(epoll, fd) ||
	    write(report, "y", 1) != 1)
		_exit(EXIT_FAILURE);
	for (;;)
		pause();
}

pid_t hanging_worker_start(const struct endpoint *endpoint, int backlog)
{
	int input CLEANUP(cleanup_fd) = -1, output CLEANUP(cleanup_fd) = -1;
	int ends[2];
	char report;
	pid_t pid;

	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0, "pipe2: %s", strerror(errno));
	input = ends[0];
	output = ends[1];
	pid = fork();
	cr_assert_geq(pid, 0, "fork: %s", strerror(errno));
	if (!pid)
		hang(endpoint, backlog, output);
	cleanup_fd(&output);
	output = -1;
	cr_assert_eq(read(input, &report, 1), 1, "the hanging worker cannot listen");
	return pid;
}

void hanging_worker_end(pid_t pid)
{
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
}
