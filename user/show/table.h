/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tables for people, drawn by libsmartcols. On a terminal a table is as wide as the terminal, and
 * the columns that may wrap or be cut do; in a pipe or a file none does. Cells hold printable
 * ASCII: names that other processes chose pass through text_escape before they come here.
 */
#ifndef SOCKSTEER_SHOW_TABLE_H
#define SOCKSTEER_SHOW_TABLE_H

#include "base/cleanup.h"
#include <libsmartcols/libsmartcols.h>
#include <stddef.h>
#include <stdio.h>

struct table_column {
	const char *name;
	double width; /* share of a terminal that is too narrow, 0 for what the content needs */
	int flags; /* SCOLS_FL_ */
};

/* -ENOMEM. The caller ends it with CLEANUP(table_free). */
int table_new(const struct table_column *columns, size_t nr_columns,
	      struct libscols_table **ret_table);
void table_free(struct libscols_table **table);

/* Writes one cell of the line. -ENOMEM, or -EINVAL without such a column. */
__attribute__((format(printf, 3, 4))) int table_set(struct libscols_line *line, size_t column,
						    const char *format, ...);

/* Prints the table without blanks at the ends of its lines. -ENOMEM or -EIO. */
int table_print(struct libscols_table *table, FILE *out);

#endif
