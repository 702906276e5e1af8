/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/remote.h"
#include "base/cleanup.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* glibc 2.36 has these two calls; older ones are served by the numbers. */
static int open_process(uint32_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static int copy_descriptor(int process_fd, uint32_t fd)
{
	return (int)syscall(SYS_pidfd_getfd, process_fd, fd, 0);
}

int remote_listener_take(uint32_t pid, uint32_t fd, uint64_t cookie, int *ret_fd)
{
	int process_fd CLEANUP(cleanup_fd) = open_process(pid);
	int copy CLEANUP(cleanup_fd) = -1;
	socklen_t length = sizeof(uint64_t);
	uint64_t found;

	if (process_fd < 0)
		return -errno;
	copy = copy_descriptor(process_fd, fd);
	if (copy < 0)
		return errno == EBADF ? -ESTALE : -errno;
	if (getsockopt(copy, SOL_SOCKET, SO_COOKIE, &found, &length) || found != cookie)
		return -ESTALE;
	*ret_fd = TAKE_FD(copy);
	return 0;
}

int reuseport_attach(int listener_fd, int program_fd)
{
	if (setsockopt(listener_fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_EBPF, &program_fd,
		       sizeof(program_fd)))
		return -errno;
	return 0;
}

int reuseport_detach(int listener_fd)
{
	int unused = 0;

	if (setsockopt(listener_fd, SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, &unused, sizeof(unused)))
		return -errno;
	return 0;
}
