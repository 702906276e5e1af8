/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The folder of pins: where everything of ours lives between two commands.
 *
 *     /sys/fs/bpf/socksteer/           the shared tables and the tracking links
 *     /sys/fs/bpf/socksteer/GROUP/     one folder for each group
 *
 * A lock, see kernel/lock.h, guards every change of the pins. It is not on the bpffs itself, which any
 * user who may read it could hold.
 */
#ifndef SOCKSTEER_KERNEL_PINS_H
#define SOCKSTEER_KERNEL_PINS_H

#include "base/failure.h"
#include <limits.h>
#include <stddef.h>

#define BPFFS_PATH "/sys/fs/bpf"
#define PINS_PATH BPFFS_PATH "/socksteer"

/* Room for any path below PINS_PATH. */
#define PIN_PATH_SIZE 256

/* EXIT_MISSING with what to do when no bpffs is mounted. */
int pins_check(struct failure *failure);

/*
 * Takes the lock, waiting a few seconds at most; closing *ret_fd gives it back. EXIT_MISSING where the
 * pins or the lock are another user's.
 */
int pins_lock(int *ret_fd, struct failure *failure);

/*
 * For pins that are there and cannot be opened, in a folder, or directly in PINS_PATH if that is NULL: why,
 * and what to do. Returns err, which is -errno.
 */
int pins_refuse(const char *folder, int err, struct failure *failure);

/* PINS_PATH/folder/name, or without folder if that is NULL. -ENAMETOOLONG. */
int pin_path(const char *folder, const char *name, char ret_path[PIN_PATH_SIZE]);

/* Makes PINS_PATH, or the folder in it. -errno; there already is fine. */
int pins_make_folder(const char *folder);

/* Removes a folder with all pins in it, or all pins directly in PINS_PATH if folder is NULL. */
int pins_remove(const char *folder);

/* Names of the group folders. The caller frees each and the array. */
int pins_list(char ***ret_folders, size_t *ret_nr_folders);
void pins_list_free(char **folders, size_t nr_folders);

#endif
