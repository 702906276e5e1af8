/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The configuration file, as it was written: which groups are to be steered, and what is chosen for
 * each. scripts/socksteer.conf shows all of it.
 *
 *     [defaults]             settings for every group
 *     [all]                  every group that can be steered and that these patterns match
 *     [group ADDR:PORT]      one group; netns tells those of several namespaces apart
 *
 * Lines are KEY = VALUE; # and ; begin a comment. Whatever is not understood is an error and nothing
 * is taken from the file then: a typing mistake must not go unnoticed until the next crash. What
 * follows from the file, and from the command line, for a living group is for orders.h to say.
 */
#ifndef SOCKSTEER_DAEMON_CONFIG_H
#define SOCKSTEER_DAEMON_CONFIG_H

#include "base/failure.h"
#include "steering/choice.h"
#include "steering/inventory.h"
#include "steering/pattern.h"
#include <stdbool.h>
#include <stddef.h>

#define MAX_CONFIG_BYTES (1 << 20)

/* A machine with more named groups than this is better served by [all]. */
#define MAX_CONFIG_GROUPS 256

/* Of a line without the blanks around it. libinih cuts longer ones apart, at 200. */
#define MAX_CONFIG_LINE 190

struct config_group {
	char *text; /* owned; GROUP as it was written */
	struct group_spec spec; /* its text is the one above */
	unsigned int line; /* where its section begins */
	struct choice choice;
};

struct config {
	struct choice defaults;
	bool all; /* there is a section [all] */
	struct patterns patterns; /* of [all] */
	struct choice all_choice;
	struct config_group *groups; /* owned, in the order of the file */
	size_t nr_groups;
};

/*
 * EXIT_USAGE with "FILE:LINE: what is wrong; what would be right", of the first mistake, and
 * *ret_config untouched. A namespace or a user that the text names is looked up.
 */
int config_parse(const char *name, const char *text, size_t size, struct config *ret_config,
		 struct failure *failure);

/* The same from a file, which may also be unreadable. */
int config_read(const char *path, struct config *ret_config, struct failure *failure);

void config_done(struct config *config);

#endif
