/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Passes over the open files of every process, done in the kernel by BPF iterators.
 */
#ifndef SOCKSTEER_KERNEL_ITERATE_H
#define SOCKSTEER_KERNEL_ITERATE_H

#include "base/failure.h"
#include "kernel/tables.h"
#include "socksteer/types.h"
#include <stddef.h>
#include <stdint.h>

/* The iterator that finds listeners, loaded. A daemon keeps one; a pass costs a few milliseconds. */
struct inspector;

int inspector_new(struct inspector **ret_inspector, struct failure *failure);
void inspector_free(struct inspector *inspector);

/* Every listening TCP socket and every epoll instance. The caller frees *ret_rows. */
int inspector_read(struct inspector *inspector, struct inspect_row **ret_rows, size_t *ret_nr_rows,
		   struct failure *failure);

#endif
