/* SPDX-License-Identifier: GPL-2.0-only */
#include "show/table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

void table_free(struct libscols_table **table)
{
	scols_unref_table(*table);
}

int table_new(const struct table_column *columns, size_t nr_columns,
	      struct libscols_table **ret_table)
{
	CLEANUP(table_free) struct libscols_table *table = scols_new_table();
	size_t i;

	if (!table)
		return -ENOMEM;
	/* The cells are escaped already, and libsmartcols would escape each backslash once more. */
	scols_table_enable_noencoding(table, 1);
	for (i = 0; i < nr_columns; i++)
		if (!scols_table_new_column(table, columns[i].name, columns[i].width,
					    columns[i].flags))
			return -ENOMEM;
	*ret_table = TAKE_PTR(table);
	return 0;
}

int table_set(struct libscols_line *line, size_t column, const char *format, ...)
{
	CLEANUP(cleanup_free) char *text = NULL;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0) {
		text = NULL;
		return -ENOMEM;
	}
	return scols_line_set_data(line, column, text);
}

static void print_trimmed(const char *text, FILE *out)
{
	while (*text) {
		size_t length = strcspn(text, "\n"), end = length;

		while (end && text[end - 1] == ' ')
			end--;
		fwrite(text, 1, end, out);
		fputc('\n', out);
		text += length;
		text += *text == '\n';
	}
}

int table_print(struct libscols_table *table, FILE *out)
{
	CLEANUP(cleanup_free) char *text = NULL;
	/* libsmartcols would look at standard output, whatever the table is written to. */
	bool is_terminal = isatty(fileno(out));
	int err;

	scols_table_set_termforce(table,
				  is_terminal ? SCOLS_TERMFORCE_ALWAYS : SCOLS_TERMFORCE_NEVER);
	err = scols_print_table_to_string(table, &text);
	if (err)
		return err;
	print_trimmed(text, out);
	return ferror(out) ? -EIO : 0;
}
