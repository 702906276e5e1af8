/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What top shows, as lines of text: two looks at the steered groups and the time between them become
 * a list of rows; a row becomes text only when it is asked for, so that a thousand workers cost no
 * more to draw than what fits the screen. Pure. All text is printable ASCII.
 */
#ifndef SOCKSTEER_SHOW_FRAME_H
#define SOCKSTEER_SHOW_FRAME_H

#include "show/view.h"
#include "steering/status.h"
#include <stdint.h>

enum frame_kind {
	FRAME_GROUP, /* its address, policy, and condition */
	FRAME_RATES, /* how its choices end, per second */
	FRAME_LISTENER,
	FRAME_BLANK,
	FRAME_NOTE, /* there is nothing to show */
};

struct frame_row {
	enum frame_kind kind;
	const struct status_group *group; /* borrowed, as all here; NULL for notes and blanks */
	const struct status_group *before; /* the same group at the earlier look, or NULL */
	const struct status_listener *listener; /* of listeners only */
	double rate; /* connections steered to it per second; negative if not known */
	uint64_t most_held; /* of all listeners of the group: a full bar */
};

struct frame {
	struct frame_row *rows; /* owned */
	size_t nr_rows;
	double seconds; /* between the two looks */
	size_t nr_groups;
	size_t nr_listeners;
};

/* The frame borrows from both looks. before is empty for the first one: no rates then. -ENOMEM. */
int frame_build(const struct status *before, const struct status *now, uint64_t elapsed_ns,
		const struct view *view, struct frame *ret_frame);
void frame_done(struct frame *frame);

/* Lines of at most width columns, without blanks at their end. ret_text holds width + 1 bytes. */
void frame_line(const struct frame *frame, size_t row, size_t width, char *ret_text);
void frame_columns(size_t width, char *ret_text); /* the heading over the listeners */
void frame_title(const struct frame *frame, const struct view *view, const char *time, size_t width,
		 char *ret_text);

#endif
