/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a person has arranged top: order, place in the list, pause, help; and what each key does to
 * that. Pure; the terminal's own key codes are translated by show/screen.h.
 */
#ifndef SOCKSTEER_SHOW_VIEW_H
#define SOCKSTEER_SHOW_VIEW_H

#include <stdbool.h>
#include <stddef.h>

enum sort_key {
	SORT_SLOT,
	SORT_PID,
	SORT_HELD,
	SORT_QUEUED,
	SORT_RATE,
	NR_SORT_KEYS,
};

struct view {
	enum sort_key sort; /* numbers of a worker rise, loads fall */
	bool reverse;
	bool paused;
	bool help; /* the help covers the list */
	size_t first; /* row at the top of the list */
};

/* Keys that are no characters. */
enum view_key {
	VIEW_NO_KEY = -1,
	VIEW_UP = 256,
	VIEW_DOWN,
	VIEW_PAGE_UP,
	VIEW_PAGE_DOWN,
	VIEW_HOME,
	VIEW_END,
};

/* "held" */
const char *sort_key_name(enum sort_key sort);

/* A list of so many rows, of which height fit. False if the key ends the view. */
bool view_press(struct view *view, int key, size_t nr_rows, size_t height);

/* Keeps the list's end at the bottom: rows may have gone, or the terminal may have grown. */
void view_clamp(struct view *view, size_t nr_rows, size_t height);

/* The help, line by line; the last one is NULL. None is wider than 38 columns, or are more than 8. */
extern const char *const view_help[];

#endif
