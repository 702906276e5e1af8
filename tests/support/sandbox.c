/* SPDX-License-Identifier: GPL-2.0-only */
#include "support/sandbox.h"
#include "base/cleanup.h"
#include "support/footprint.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define OWN_NETWORK "/proc/thread-self/ns/net"

/* Longer than either line of /proc/net/netstat that describes TcpExt, some 130 counters. */
#define NETSTAT_LINE_BYTES 8192

static int loopback_up(void)
{
	int fd CLEANUP(cleanup_fd) = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request))
		return -errno;
	return 0;
}

/* As many descriptors as the machine allows: tests hold crowds of connections. */
static int descriptors_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return -errno;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) ? -errno : 0;
}

void sandbox_enter(void)
{
	int err;

	if (unshare(CLONE_NEWNET | CLONE_NEWNS)) {
		if (errno == EPERM)
			cr_skip_test("needs root for a network namespace of its own");
		cr_assert_fail("unshare: %s", strerror(errno));
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("bpf", "/sys/fs/bpf", "bpf", 0, NULL)) {
		if (errno == EPERM)
			cr_skip_test("needs root for a bpffs of its own");
		cr_assert_fail("mount: %s", strerror(errno));
	}
	err = loopback_up();
	cr_assert_eq(err, 0, "lo cannot be brought up: %s", strerror(-err));
	err = descriptors_raise();
	cr_assert_eq(err, 0, "RLIMIT_NOFILE: %s", strerror(-err));
}

void quick_sandbox_enter(void)
{
	sandbox_enter();
	kallsyms_shorten();
}

void network_current(struct network *ret_network)
{
	struct stat info;

	ret_network->fd = open(OWN_NETWORK, O_RDONLY | O_CLOEXEC);
	cr_assert(ret_network->fd >= 0, "%s: %s", OWN_NETWORK, strerror(errno));
	cr_assert_eq(fstat(ret_network->fd, &info), 0);
	ret_network->inode = (uint32_t)info.st_ino;
}

void network_enter(const struct network *network)
{
	cr_assert_eq(setns(network->fd, CLONE_NEWNET), 0, "setns: %s", strerror(errno));
}

void network_new(struct network *ret_network)
{
	struct network before;

	network_current(&before);
	cr_assert_eq(unshare(CLONE_NEWNET), 0, "unshare: %s", strerror(errno));
	cr_assert_eq(loopback_up(), 0);
	network_current(ret_network);
	network_enter(&before);
	network_done(&before);
}

void network_done(struct network *network)
{
	cleanup_fd(&network->fd);
	network->fd = -1;
}

void sysctl_write(const char *name, const char *value)
{
	int fd CLEANUP(cleanup_fd) = -1;
	char path[128];

	snprintf(path, sizeof(path), "/proc/sys/%s", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	cr_assert(fd >= 0, "%s: %s", path, strerror(errno));
	cr_assert_eq(write(fd, value, strlen(value)), (ssize_t)strlen(value), "%s: %s", path,
		     strerror(errno));
}

/* The value in one line that stands where the name stands in the other. */
static bool find_counter(char *names, char *values, const char *name, uint64_t *ret_count)
{
	char *next_name, *next_value;
	char *word = strtok_r(names, " \n", &next_name);
	char *number = strtok_r(values, " \n", &next_value);

	for (; word && number; word = strtok_r(NULL, " \n", &next_name),
			       number = strtok_r(NULL, " \n", &next_value)) {
		if (strcmp(word, name))
			continue;
		*ret_count = strtoull(number, NULL, 10);
		return true;
	}
	return false;
}

uint64_t netstat_read(const char *name)
{
	FILE *file CLEANUP(cleanup_file) = fopen("/proc/thread-self/net/netstat", "re");
	char names[NETSTAT_LINE_BYTES], values[NETSTAT_LINE_BYTES];
	uint64_t count = 0;

	cr_assert_not_null(file, "netstat: %s", strerror(errno));
	while (fgets(names, sizeof(names), file) && fgets(values, sizeof(values), file))
		if (find_counter(names, values, name, &count))
			return count;
	cr_assert_fail("/proc/net/netstat has no %s", name);
	return 0;
}
