/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the daemon was told, by its command line and its file together: which groups it keeps, and
 * with which settings. Nothing here looks at the machine.
 *
 * The command line adds to the groups of the file, and its settings win over the file's. Of the
 * file, one section counts for a group: its own, the one that says most about it if several fit;
 * else, unless GROUP named it, [all]. [defaults] fills what is left open.
 */
#ifndef SOCKSTEER_DAEMON_ORDERS_H
#define SOCKSTEER_DAEMON_ORDERS_H

#include "daemon/config.h"
#include "daemon/daemon.h"
#include "steering/choice.h"
#include "steering/inventory.h"
#include <stdbool.h>
#include <stdio.h>

struct orders {
	const struct daemon_options *options; /* borrowed */
	struct config config; /* owned; empty without a file */
};

/* Reads the file if one is named. EXIT_USAGE when it is bad, with *ret_orders untouched. */
int orders_init(const struct daemon_options *options, struct orders *ret_orders,
		struct failure *failure);
void orders_done(struct orders *orders);

/* True if the group was named, on the command line or by a section. */
bool orders_name(const struct orders *orders, const struct group *group);

/* True if it was named, or is one of "all". Whether it can be steered is another matter. */
bool orders_keep(const struct orders *orders, const struct group *group);

/* True if a group at which this happened may be kept. */
bool orders_concern(const struct orders *orders, const struct event *event);

/* What was chosen for a group. */
void orders_choose(const struct orders *orders, const struct group *group,
		   struct choice *ret_choice);

/* One line for each group that was named and each "all", with the settings that it gets. */
void orders_print(const struct orders *orders, FILE *out);

#endif
