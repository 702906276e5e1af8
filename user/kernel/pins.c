/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/pins.h"
#include "base/cleanup.h"
#include "kernel/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* A change takes a good part of a second. */
#define LOCK_PATIENCE_MS 5000

int pins_check(struct failure *failure)
{
	struct statfs info;

	if (statfs(BPFFS_PATH, &info) || info.f_type != BPF_FS_MAGIC)
		return failure_set(failure, EXIT_MISSING, ENODEV,
				   "no bpffs at " BPFFS_PATH
				   ": mount it with \"mount -t bpf bpf " BPFFS_PATH "\"");
	return 0;
}

/*
 * Root owns what it mounts, so it is refused only where it has given up CAP_DAC_OVERRIDE, as the daemon
 * has, and the bpffs or the pins are another user's.
 */
static int owner_check(struct failure *failure)
{
	bool has_pins = !access(PINS_PATH, F_OK);
	int mode = R_OK | X_OK | (has_pins ? 0 : W_OK);
	const char *path = BPFFS_PATH;

	if (!faccessat(AT_FDCWD, path, mode, AT_EACCESS)) {
		path = PINS_PATH;
		if (!has_pins || !faccessat(AT_FDCWD, path, R_OK | W_OK | X_OK, AT_EACCESS))
			return 0;
	}
	return failure_set(
		failure, EXIT_MISSING, errno,
		"user %u cannot keep pins in %s: %s; run as its owner, or make " PINS_PATH
		" that user's, in a " BPFFS_PATH " that it may read",
		geteuid(), path, strerror(errno));
}

int pins_lock(int *ret_fd, struct failure *failure)
{
	int err = owner_check(failure);

	if (err)
		return err;
	err = lock_take("pins", LOCK_PATIENCE_MS, ret_fd, failure);
	if (err == -EBUSY)
		return failure_set(failure, EXIT_FAILED, EBUSY,
				   "another socksteer is changing the pins below " PINS_PATH
				   " and does not end: try again, or stop it");
	return err;
}

static const char *advice(int err)
{
	switch (-err) {
	case EACCES:
	case EPERM:
		return "run as root, or as the user who has made them";
	case EMFILE:
		return "allow more open files, see \"ulimit -Hn\"";
	default:
		return "try again, and \"socksteer detach --all\" clears what stays unreadable";
	}
}

int pins_refuse(const char *folder, int err, struct failure *failure)
{
	enum exit_code code = err == -EACCES || err == -EPERM ? EXIT_MISSING : EXIT_FAILED;

	return failure_set(failure, code, -err,
			   "cannot open the pins below " PINS_PATH "%s%s: %s; %s",
			   folder ? "/" : "", folder ? folder : "", strerror(-err), advice(err));
}

int pin_path(const char *folder, const char *name, char ret_path[PIN_PATH_SIZE])
{
	int length;

	if (folder)
		length = snprintf(ret_path, PIN_PATH_SIZE, PINS_PATH "/%s/%s", folder, name);
	else
		length = snprintf(ret_path, PIN_PATH_SIZE, PINS_PATH "/%s", name);
	return length < PIN_PATH_SIZE ? 0 : -ENAMETOOLONG;
}

int pins_make_folder(const char *folder)
{
	char path[PIN_PATH_SIZE];
	int err = 0;

	if (mkdir(PINS_PATH, 0700) && errno != EEXIST)
		return -errno;
	if (!folder)
		return 0;
	err = pin_path(folder, "", path);
	if (!err && mkdir(path, 0700) && errno != EEXIST)
		err = -errno;
	return err;
}

/* Unlinks what is in an open folder; sub-folders stay. */
static int remove_entries(DIR *dir)
{
	struct dirent *entry;
	int err = 0;

	while ((entry = readdir(dir)))
		if (entry->d_type != DT_DIR && unlinkat(dirfd(dir), entry->d_name, 0) &&
		    errno != ENOENT)
			err = -errno;
	return err;
}

int pins_remove(const char *folder)
{
	DIR *dir CLEANUP(cleanup_dir) = NULL;
	char path[PIN_PATH_SIZE];
	int err;

	err = pin_path(folder ? folder : "", "", path);
	if (err)
		return err;
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	err = remove_entries(dir);
	/* Who owns the folder but not the bpffs around it leaves it there, empty. */
	if (!err && rmdir(path) && errno != ENOENT && (folder || errno != EACCES))
		err = -errno;
	return err;
}

static bool is_group_folder(const struct dirent *entry)
{
	return entry->d_type == DT_DIR && entry->d_name[0] != '.';
}

static int list_append(const char *name, char ***folders, size_t *nr_folders)
{
	char **larger = reallocarray(*folders, *nr_folders + 1, sizeof(**folders));

	if (!larger)
		return -ENOMEM;
	*folders = larger;
	larger[*nr_folders] = strdup(name);
	if (!larger[*nr_folders])
		return -ENOMEM;
	(*nr_folders)++;
	return 0;
}

int pins_list(char ***ret_folders, size_t *ret_nr_folders)
{
	DIR *dir CLEANUP(cleanup_dir) = opendir(PINS_PATH);
	struct dirent *entry;
	char **folders = NULL;
	size_t nr_folders = 0;
	int err = 0;

	if (!dir && errno != ENOENT)
		return -errno;
	while (!err && dir && (entry = readdir(dir)))
		if (is_group_folder(entry))
			err = list_append(entry->d_name, &folders, &nr_folders);
	if (err) {
		pins_list_free(folders, nr_folders);
		return err;
	}
	*ret_folders = folders;
	*ret_nr_folders = nr_folders;
	return 0;
}

void pins_list_free(char **folders, size_t nr_folders)
{
	size_t i;

	for (i = 0; i < nr_folders; i++)
		free(folders[i]);
	free(folders);
}
