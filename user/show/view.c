/* SPDX-License-Identifier: GPL-2.0-only */
#include "show/view.h"

static const char *const sort_names[NR_SORT_KEYS] = {
	[SORT_SLOT] = "slot",	  [SORT_PID] = "pid",	[SORT_HELD] = "held",
	[SORT_QUEUED] = "queued", [SORT_RATE] = "rate",
};

const char *const view_help[] = {
	"s  sort by slot, pid, held, queued,",
	"   rate in turn      r  reverse",
	"arrows, page up and down, home, end",
	"   move through the list",
	"p  pause, and go on",
	"?  h  show this help, any key closes it",
	"q  quit",
	NULL,
};

const char *sort_key_name(enum sort_key sort)
{
	return sort < NR_SORT_KEYS ? sort_names[sort] : "unknown";
}

void view_clamp(struct view *view, size_t nr_rows, size_t height)
{
	size_t last = nr_rows > height ? nr_rows - height : 0;

	if (view->first > last)
		view->first = last;
}

static void scroll_up(struct view *view, size_t nr_steps)
{
	view->first -= view->first < nr_steps ? view->first : nr_steps;
}

static void move(struct view *view, int key, size_t nr_rows, size_t height)
{
	switch (key) {
	case VIEW_UP:
		scroll_up(view, 1);
		break;
	case VIEW_DOWN:
		view->first++;
		break;
	case VIEW_PAGE_UP:
		scroll_up(view, height);
		break;
	case VIEW_PAGE_DOWN:
		view->first += height;
		break;
	case VIEW_HOME:
		view->first = 0;
		break;
	case VIEW_END:
		view->first = nr_rows;
		break;
	default:
		break;
	}
	view_clamp(view, nr_rows, height);
}

bool view_press(struct view *view, int key, size_t nr_rows, size_t height)
{
	bool helped = view->help;

	view->help = false;
	switch (key) {
	case 'q':
		return false;
	case '?':
	case 'h':
		view->help = !helped;
		break;
	case 's':
		view->sort = (view->sort + 1) % NR_SORT_KEYS;
		break;
	case 'r':
		view->reverse = !view->reverse;
		break;
	case 'p':
	case ' ':
		view->paused = !view->paused;
		break;
	default:
		move(view, key, nr_rows, height);
	}
	return true;
}
