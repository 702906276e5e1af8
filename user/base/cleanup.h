/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ownership of locals. A variable marked CLEANUP(f) gives its resource back when it goes out of
 * scope; TAKE_PTR and TAKE_FD hand the resource over instead.
 */
#ifndef SOCKSTEER_BASE_CLEANUP_H
#define SOCKSTEER_BASE_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(function) __attribute__((cleanup(function)))

#define TAKE_PTR(pointer)                                                                          \
	({                                                                                         \
		__typeof__(pointer) taken_ = (pointer);                                            \
		(pointer) = NULL;                                                                  \
		taken_;                                                                            \
	})

#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int taken_ = (fd);                                                                 \
		(fd) = -1;                                                                         \
		taken_;                                                                            \
	})

static inline void cleanup_free(void *pointer)
{
	free(*(void **)pointer);
}

static inline void cleanup_fd(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_dir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static inline void cleanup_file(FILE **file)
{
	if (*file)
		fclose(*file);
}

#endif
