/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/netns.h"
#include "base/cleanup.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* The namespace behind a file such as /run/netns/blue. -ENOTTY if the file is something else. */
static int netns_of_path(const char *path, uint32_t *ret_netns)
{
	/* Whatever the user names, the open neither waits nor takes it as a terminal. */
	CLEANUP(cleanup_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct statfs filesystem;
	struct stat status;

	if (fd < 0 || fstatfs(fd, &filesystem) || fstat(fd, &status))
		return -errno;
	if (filesystem.f_type != NSFS_MAGIC || ioctl(fd, NS_GET_NSTYPE) != CLONE_NEWNET)
		return -ENOTTY;
	*ret_netns = (uint32_t)status.st_ino;
	return 0;
}

int netns_parse(const char *label, const char *text, uint32_t *ret_netns, struct failure *failure)
{
	char quoted[256];
	uint64_t inode;
	int err = text_to_u64(text, 1, UINT32_MAX, &inode);

	if (!err) {
		*ret_netns = (uint32_t)inode;
		return 0;
	}
	if (err == -EINVAL)
		err = netns_of_path(text, ret_netns);
	if (!err)
		return 0;
	text_escape(text, strlen(text), quoted, sizeof(quoted));
	if (err == -ERANGE)
		return failure_set(failure, EXIT_USAGE, EINVAL, "%s %s: an inode number is 1 to %u",
				   label, quoted, UINT32_MAX);
	if (err == -ENOTTY)
		return failure_set(failure, EXIT_USAGE, EINVAL,
				   "%s \"%s\" is not a network namespace; it takes an inode "
				   "number, or a path such as /run/netns/NAME or /proc/PID/ns/net",
				   label, quoted);
	return failure_set(failure, EXIT_USAGE, EINVAL,
			   "%s \"%s\": %s; it takes an inode number, or a path such as "
			   "/run/netns/NAME or /proc/PID/ns/net",
			   label, quoted, strerror(-err));
}
