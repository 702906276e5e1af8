/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What all groups share: the pinned tables of workers and listeners, and the tracking programs that
 * fill them. They are complete exactly when the map "layout" is pinned, which is done last.
 */
#ifndef SOCKSTEER_KERNEL_TABLES_H
#define SOCKSTEER_KERNEL_TABLES_H

#include "base/failure.h"

/* Descriptors, owned; -1 where there is none. */
struct tables {
	int layout;
	int workers;
	int worker_load;
	int listener_info;
	int listener_load;
	int events;
	int audits;
	int conn_owner;
};

#define TABLES_NONE                                                                                \
	(struct tables)                                                                            \
	{                                                                                          \
		-1, -1, -1, -1, -1, -1, -1, -1                                                     \
	}

/*
 * Opens the pins. -ENOENT without a message when nothing complete is pinned; -EPROTO with a message
 * when they are of another layout version.
 */
int tables_open(struct tables *ret_tables, struct failure *failure);

/* Loads, attaches and pins tracking. Nothing may be pinned yet. */
int tables_create(struct tables *ret_tables, struct failure *failure);

void tables_done(struct tables *tables);

#endif
