/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * terminal: a run of the program in a pseudo terminal, as a person has it, with keys that are pressed,
 * a window that is resized, and everything that was drawn. Nobody emulates a screen: after a resize
 * the program draws all of it again, and that is what tests read.
 */
#ifndef SUPPORT_TERMINAL_H
#define SUPPORT_TERMINAL_H

#include "support/program.h"

#include <stddef.h>
#include <termios.h>

struct terminal {
	struct program program;
	int master; /* owned */
	int slave; /* owned, so that the terminal outlives the program */
	const char *type; /* borrowed, for TERM; NULL for none */
	struct termios modes; /* before the program began */
	char *drawn; /* owned */
	size_t length;
	size_t seen; /* how much of it terminal_await() has passed */
};

/* Starts the program with these arguments, a list that ends with NULL, on a terminal of this type. */
void terminal_start_list(struct terminal *ret_terminal, const char *type, unsigned short nr_rows,
			 unsigned short nr_columns, const char *const *arguments);
#define terminal_start(ret_terminal, type, nr_rows, nr_columns, ...)                               \
	terminal_start_list(ret_terminal, type, nr_rows, nr_columns,                               \
			    (const char *const[]){ __VA_ARGS__, NULL })
void terminal_done(struct terminal *terminal);

void terminal_press(struct terminal *terminal, const char *keys);
void terminal_resize(struct terminal *terminal, unsigned short nr_rows, unsigned short nr_columns);

/* Waits until the program has drawn these words, after whatever was waited for before. */
void terminal_await(struct terminal *terminal, const char *words);

/* Waits for the program's end; its output is what was drawn, and ret_said->output empty. */
void terminal_wait(struct terminal *terminal, struct said *ret_said);

/* Expects that the program has given the terminal back as it found it. */
void expect_terminal_restored(const struct terminal *terminal, const char *what);

#endif
