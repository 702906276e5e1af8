/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rows of the shared tables: which are free, and whose the others are.
 *
 * A copy of both tables, read once under the lock; every change is written to the kernel at once.
 * A row that gets a new owner gets a new generation first, so that connections which still name the
 * old one are charged to nobody.
 */
#ifndef SOCKSTEER_STEERING_ROSTER_H
#define SOCKSTEER_STEERING_ROSTER_H

#include "kernel/tables.h"
#include "socksteer/types.h"
#include "steering/inventory.h"
#include <stdbool.h>

struct roster {
	const struct tables *tables; /* borrowed */
	struct worker workers[MAX_WORKERS];
	struct listener_info listeners[MAX_LISTENERS];
};

/* Reads the tables. The caller frees *ret_roster. -ENOMEM or what the kernel says. */
int roster_read(const struct tables *tables, struct roster **ret_roster);

/*
 * The row of the worker that serves a listener: the one it has, by process and event loop, or a new
 * one. exclusive always makes a new one, for groups whose listeners share a single event loop.
 * -ENOSPC when the table is full.
 */
int roster_take_worker(struct roster *roster, const struct listener *listener, bool exclusive,
		       uint32_t *ret_row);

/* A new row for a listener. -ENOSPC. */
int roster_take_listener(struct roster *roster, const struct listener *listener, uint32_t worker,
			 uint32_t *ret_row);

/* Charges a listener's next connections to another worker. */
int roster_move_listener(struct roster *roster, uint32_t row, uint32_t worker);

/* Frees a listener's row, and then the rows of workers without any listener. */
int roster_free_listener(struct roster *roster, uint32_t row);
int roster_free_unused_workers(struct roster *roster);

/* True if the row is that of the worker which serves the listener. */
bool worker_serves(const struct worker *worker, const struct listener *listener);

/* The record that charges connections to these two rows. */
struct conn_owner roster_owner(const struct roster *roster, uint32_t worker, uint32_t listener);

#endif
