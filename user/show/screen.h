/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The terminal on which top draws: everything that is ncurses. What stands in a line is said by
 * show/frame.h, what a key does by show/view.h.
 */
#ifndef SOCKSTEER_SHOW_SCREEN_H
#define SOCKSTEER_SHOW_SCREEN_H

#include "base/failure.h"
#include "show/frame.h"
#include "show/view.h"
#include <stdbool.h>

struct screen;

/*
 * Takes the terminal of standard input and output. Fails with a message that names --once where
 * there is none, or none that can move its cursor.
 */
int screen_new(struct screen **ret_screen, struct failure *failure);

/* Gives it back as it was. */
void screen_free(struct screen *screen);

/* Draws what of the frame is in view. time stands in the first line. */
void screen_draw(struct screen *screen, const struct frame *frame, const struct view *view,
		 const char *time);

/* Rows of the list that fit. */
size_t screen_list_height(const struct screen *screen);

/* The next key that was pressed, a character or of enum view_key; VIEW_NO_KEY if there is none. */
int screen_read_key(struct screen *screen);

/* True if nobody is at the other end any more. */
bool screen_is_gone(const struct screen *screen);

/* Takes note of the terminal's new size. */
void screen_resize(struct screen *screen);

#endif
