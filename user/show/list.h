/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The inventory as a table of groups, and its JSON twin with every listener. Knows how things
 * look; what they are is said by steering/inventory.h. The only thing it asks of the system is
 * the name of a network device, which is known for the caller's own network namespace alone.
 */
#ifndef SOCKSTEER_SHOW_LIST_H
#define SOCKSTEER_SHOW_LIST_H

#include "steering/inventory.h"
#include <stdio.h>

/* Both: -ENOMEM, or -EIO if the output fails. */
int list_print_table(const struct inventory *inventory, FILE *out);
int list_print_json(const struct inventory *inventory, FILE *out);

#endif
