/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Taking steering away again, from whatever state it is found in: whole, half done by a command that
 * was killed, without its pins, or of another layout version. Called under the lock.
 */
#ifndef SOCKSTEER_STEERING_CLEAR_H
#define SOCKSTEER_STEERING_CLEAR_H

#include "base/failure.h"
#include "kernel/tables.h"
#include "steering/inventory.h"
#include <stdbool.h>

/*
 * The group has a steer program that is not pinned here: its pins were removed by hand, or they are
 * in another bpffs and somebody else steers it. So it is touched only when the user insists.
 */
bool group_is_orphan(const struct group *group);

/* Empties the slots of such a program, so that its listeners can be put into others. */
void clear_orphan(const struct group *group);

/*
 * Takes the program off the group, every listener out of its slot, frees the rows and removes the
 * pins. What is not there is no error. tables may be TABLES_NONE, then no rows are freed.
 */
int clear_group(const char *folder, const struct inventory *inventory, const struct tables *tables,
		struct failure *failure);

/* The same for every group and for the tables: nothing of ours is left. */
int clear_everything(const struct inventory *inventory, struct failure *failure);

/* Removes the tables and the tracking if no group is left to use them. */
void clear_unused_tables(void);

#endif
