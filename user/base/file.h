/* SPDX-License-Identifier: GPL-2.0-only */
/* A whole file at once, as long as it is not too large. */
#ifndef SOCKSTEER_BASE_FILE_H
#define SOCKSTEER_BASE_FILE_H

#include <stddef.h>

/*
 * A regular file of at most max_bytes. *ret_text has a NUL after its *ret_size bytes and is the
 * caller's. -EFBIG for a larger one, -EISDIR for a folder, -ENODEV for whatever else is no regular
 * file (nothing waits for a pipe), or what open() and read() say.
 */
int file_read(const char *path, size_t max_bytes, char **ret_text, size_t *ret_size);

#endif
