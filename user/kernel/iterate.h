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

/* Whom to charge for connections watched by an epoll instance, or held by a process. */
struct seed_owner {
	uint64_t key; /* identity of the epoll instance, or a process id */
	struct conn_owner owner;
};

/* Charges connections that carry no record yet. May be repeated; none is counted twice. */
int seed_connections(const struct tables *tables, const struct seed_filter *filter,
		     const struct seed_owner *owners, size_t nr_owners, uint64_t *ret_nr_seeded,
		     struct failure *failure);

#endif
