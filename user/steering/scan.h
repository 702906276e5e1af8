/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The inventory of the running machine: one kernel scan, joined, with our own groups marked.
 */
#ifndef SOCKSTEER_STEERING_SCAN_H
#define SOCKSTEER_STEERING_SCAN_H

#include "base/failure.h"
#include "steering/inventory.h"

struct inspector;

/* The same with an iterator that is loaded already. */
int inventory_scan_with(struct inspector *inspector, struct inventory *ret_inventory,
			struct failure *failure);

/* 0 or -errno with *failure filled. The caller ends it with inventory_done(). */
int inventory_scan(struct inventory *ret_inventory, struct failure *failure);

#endif
