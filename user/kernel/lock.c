/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/lock.h"
#include "base/cleanup.h"
#include "kernel/pins.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define LOCKS_PATH "/run/socksteer"

#define PAUSE_MS 100

static int refuse_owner(const char *path, const char *why, struct failure *failure)
{
	return failure_set(failure, EXIT_MISSING, EACCES,
			   "cannot open the lock %s: %s; user %u has to own " LOCKS_PATH
			   " and what is in it: \"install -d -o USER " LOCKS_PATH "\"",
			   path, why, geteuid());
}

static int open_folder(const char *path, int *ret_fd, struct failure *failure)
{
	const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

	*ret_fd = open(LOCKS_PATH, flags);
	if (*ret_fd < 0 && errno == ENOENT && (!mkdir(LOCKS_PATH, 0755) || errno == EEXIST))
		*ret_fd = open(LOCKS_PATH, flags);
	if (*ret_fd >= 0)
		return 0;
	if (errno == EACCES)
		return refuse_owner(path, strerror(errno), failure);
	return failure_set(failure, EXIT_MISSING, errno,
			   "cannot make " LOCKS_PATH
			   " for the lock %s: %s; make that folder, and /run if there is none",
			   path, strerror(errno));
}

/* Who owns the pins can change them without any lock, so root follows that user's. */
static bool owns_pins(uid_t user)
{
	struct stat pins;

	return !stat(PINS_PATH, &pins) && pins.st_uid == user;
}

static int check_folder(int folder, const char *path, uid_t *ret_user, struct failure *failure)
{
	struct stat status;
	char why[64];

	if (fstat(folder, &status))
		return failure_set(failure, EXIT_FAILED, errno, "cannot stat " LOCKS_PATH ": %s",
				   strerror(errno));
	if (status.st_mode & S_IWOTH)
		return failure_set(failure, EXIT_MISSING, EACCES,
				   "cannot trust the lock %s: everybody may change " LOCKS_PATH
				   "; \"chmod 755 " LOCKS_PATH "\"",
				   path);
	*ret_user = status.st_uid;
	if (!status.st_uid || status.st_uid == geteuid() ||
	    (!geteuid() && owns_pins(status.st_uid)))
		return 0;
	snprintf(why, sizeof(why), "its folder is user %u's", status.st_uid);
	return refuse_owner(path, why, failure);
}

/* What root makes in a user's folder is that user's, who could not open it otherwise. */
static int open_file(int folder, uid_t user, const char *path)
{
	const char *name = path + strlen(LOCKS_PATH "/");
	const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(folder, name, flags);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	fd = openat(folder, name, flags | O_CREAT | O_EXCL, 0600);
	if (fd < 0 && errno == EEXIST)
		return openat(folder, name, flags);
	if (fd >= 0 && !geteuid() && user && fchown(fd, user, (gid_t)-1)) {
		unlinkat(folder, name, 0);
		close(TAKE_FD(fd));
		errno = EACCES;
	}
	return fd;
}

static int open_lock(const char *path, int *ret_fd, struct failure *failure)
{
	int folder CLEANUP(cleanup_fd) = -1;
	uid_t user = 0;
	int err = open_folder(path, &folder, failure);

	if (!err)
		err = check_folder(folder, path, &user, failure);
	if (err)
		return err;
	*ret_fd = open_file(folder, user, path);
	if (*ret_fd >= 0)
		return 0;
	/* Without CAP_DAC_OVERRIDE, which the daemon gives up, owners count for root too. */
	if (errno == EACCES)
		return refuse_owner(path, strerror(errno), failure);
	return failure_set(failure, EXIT_FAILED, errno,
			   "cannot open the lock %s: %s; it has to be a file that can be written",
			   path, strerror(errno));
}

/* The device number tells one bpffs from another. */
static int lock_path(const char *purpose, char *ret_path, size_t size, struct failure *failure)
{
	struct stat bpffs;

	if (stat(BPFFS_PATH, &bpffs))
		return failure_set(failure, EXIT_FAILED, errno,
				   "cannot stat " BPFFS_PATH ": %s; a bpffs has to be there",
				   strerror(errno));
	snprintf(ret_path, size, LOCKS_PATH "/%s-%lu.lock", purpose, (unsigned long)bpffs.st_dev);
	return 0;
}

int lock_take(const char *purpose, unsigned int patience_ms, int *ret_fd, struct failure *failure)
{
	int fd CLEANUP(cleanup_fd) = -1;
	unsigned int waited_ms;
	char path[64];
	int err = lock_path(purpose, path, sizeof(path), failure);

	if (!err)
		err = open_lock(path, &fd, failure);
	if (err)
		return err;
	for (waited_ms = 0; flock(fd, LOCK_EX | LOCK_NB); waited_ms += PAUSE_MS) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return failure_set(failure, EXIT_FAILED, errno,
					   "cannot take the lock %s: %s; its file system has to "
					   "know locks",
					   path, strerror(errno));
		if (waited_ms >= patience_ms)
			return -EBUSY;
		poll(NULL, 0, PAUSE_MS);
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}
