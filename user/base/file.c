/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/file.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static int check_kind(int fd)
{
	struct stat status;

	if (fstat(fd, &status))
		return -errno;
	if (S_ISDIR(status.st_mode))
		return -EISDIR;
	return S_ISREG(status.st_mode) ? 0 : -ENODEV;
}

/* Up to size bytes, fewer only at the end of the file. */
static int read_all(int fd, char *text, size_t size, size_t *ret_size)
{
	size_t used = 0;
	ssize_t count;

	while (used < size) {
		count = read(fd, text + used, size - used);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -errno;
		if (!count)
			break;
		used += (size_t)count;
	}
	*ret_size = used;
	return 0;
}

int file_read(const char *path, size_t max_bytes, char **ret_text, size_t *ret_size)
{
	int fd CLEANUP(cleanup_fd) = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char *text CLEANUP(cleanup_free) = NULL;
	size_t size = 0;
	int err;

	if (fd < 0)
		return -errno;
	err = check_kind(fd);
	if (err)
		return err;
	text = malloc(max_bytes + 1);
	if (!text)
		return -ENOMEM;
	err = read_all(fd, text, max_bytes + 1, &size);
	if (err)
		return err;
	if (size > max_bytes)
		return -EFBIG;
	text[size] = '\0';
	*ret_text = TAKE_PTR(text);
	*ret_size = size;
	return 0;
}
