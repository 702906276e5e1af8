/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Locks between processes: one file for each purpose and bpffs in /run/socksteer, which only its owner
 * can open, and so nobody else can hold. That takes a folder which no stranger can change.
 */
#ifndef SOCKSTEER_KERNEL_LOCK_H
#define SOCKSTEER_KERNEL_LOCK_H

#include "base/failure.h"

/*
 * Takes the lock "purpose" of the bpffs that is mounted, waiting patience_ms at most; closing *ret_fd
 * gives it back. -EBUSY, and *failure untouched, where another process has it: the caller knows what
 * that one does. EXIT_MISSING with what to do where the folder or the lock is another user's.
 */
int lock_take(const char *purpose, unsigned int patience_ms, int *ret_fd, struct failure *failure);

#endif
