/* SPDX-License-Identifier: GPL-2.0-only */
#include "show/screen.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>

/* Wider terminals leave the rest blank. */
#define MAX_COLUMNS 1000

/* Lines over the list: the title and the names of the columns. */
#define NR_LINES_ABOVE 2
/* The hints below it; a terminal of fewer lines does without. */
#define LINES_FOR_HINTS 6

static const char hints[] = "q quit  ? help  s sort  r reverse  p pause";

struct screen {
	SCREEN *terminal; /* owned */
};

static const char *terminal_type(void)
{
	const char *type = getenv("TERM");

	return type ? type : "";
}

/* Whether the cursor can be moved; newterm() does not ask. */
static bool terminal_has_cursor(void)
{
	const char *movement;
	int err;

	if (setupterm(NULL, STDOUT_FILENO, &err) != OK)
		return false;
	movement = tigetstr("cup");
	del_curterm(cur_term);
	/* Minus one stands for what is no string. */
	return movement && movement != (const char *)-1;
}

static int check_terminal(struct failure *failure)
{
	char type[64];

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return failure_set(failure, EXIT_FAILED, ENOTTY,
				   "top draws on a terminal, and standard input or output is none: "
				   "\"socksteer top --once\" prints one frame without");
	if (terminal_has_cursor())
		return 0;
	text_escape(terminal_type(), strlen(terminal_type()), type, sizeof(type));
	return failure_set(
		failure, EXIT_FAILED, ENOTTY,
		"top cannot draw on a terminal of the type \"%s\": set TERM to what it is, "
		"or print one frame with \"socksteer top --once\"",
		type);
}

static void set_modes(void)
{
	cbreak();
	noecho();
	nonl();
	intrflush(stdscr, FALSE);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
}

int screen_new(struct screen **ret_screen, struct failure *failure)
{
	struct screen *screen;
	int err;

	err = check_terminal(failure);
	if (err)
		return err;
	screen = calloc(1, sizeof(*screen));
	if (!screen)
		return failure_set(failure, EXIT_FAILED, ENOMEM, "out of memory");
	screen->terminal = newterm(NULL, stdout, stdin);
	if (!screen->terminal) {
		free(screen);
		return failure_set(failure, EXIT_FAILED, ENOTTY,
				   "cannot draw on this terminal: "
				   "use \"socksteer top --once\"");
	}
	set_modes();
	screen_resize(screen);
	*ret_screen = screen;
	return 0;
}

void screen_free(struct screen *screen)
{
	if (!screen)
		return;
	endwin();
	delscreen(screen->terminal);
	free(screen);
}

void screen_resize(struct screen *screen)
{
	struct winsize size;

	(void)screen;
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col)
		resizeterm(size.ws_row, size.ws_col);
	clearok(stdscr, TRUE);
}

static size_t lines_below(void)
{
	return LINES >= LINES_FOR_HINTS;
}

size_t screen_list_height(const struct screen *screen)
{
	size_t others = NR_LINES_ABOVE + lines_below();

	(void)screen;
	return (size_t)LINES > others ? (size_t)LINES - others : 1;
}

static size_t screen_width(void)
{
	return COLS < MAX_COLUMNS ? (size_t)COLS : MAX_COLUMNS;
}

static void put(int y, const char *text, attr_t attributes)
{
	attrset(attributes);
	mvaddnstr(y, 0, text, COLS);
	attrset(A_NORMAL);
}

static attr_t row_attributes(const struct frame_row *row)
{
	if (row->kind == FRAME_GROUP)
		return A_BOLD;
	if (row->kind != FRAME_LISTENER)
		return A_NORMAL;
	if (row->listener->gone || row->listener->draining)
		return A_DIM;
	if (row->listener->state == STATE_STUCK)
		return A_REVERSE;
	return row->listener->state == STATE_UNATTENDED ? A_BOLD : A_NORMAL;
}

static void draw_list(const struct frame *frame, const struct view *view, size_t height)
{
	char text[MAX_COLUMNS + 1];
	size_t i;

	for (i = 0; i < height && view->first + i < frame->nr_rows; i++) {
		frame_line(frame, view->first + i, screen_width(), text);
		put((int)i + NR_LINES_ABOVE, text, row_attributes(&frame->rows[view->first + i]));
	}
}

static void draw_help(void)
{
	int i;

	for (i = 0; view_help[i]; i++)
		put(i + NR_LINES_ABOVE, view_help[i], A_NORMAL);
}

/* A line in reverse video, from one edge to the other. */
static void put_bar(int y, char text[MAX_COLUMNS + 1])
{
	size_t length = strlen(text), width = screen_width();

	memset(text + length, ' ', width - length);
	text[width] = '\0';
	put(y, text, A_REVERSE);
}

void screen_draw(struct screen *screen, const struct frame *frame, const struct view *view,
		 const char *time)
{
	char text[MAX_COLUMNS + 1];

	erase();
	frame_title(frame, view, time, screen_width(), text);
	put(0, text, A_NORMAL);
	frame_columns(screen_width(), text);
	put_bar(1, text);
	if (view->help)
		draw_help();
	else
		draw_list(frame, view, screen_list_height(screen));
	if (lines_below())
		put(LINES - 1, hints, A_DIM);
	refresh();
}

int screen_read_key(struct screen *screen)
{
	int key = getch();

	(void)screen;
	switch (key) {
	case ERR:
		return VIEW_NO_KEY;
	case KEY_UP:
		return VIEW_UP;
	case KEY_DOWN:
		return VIEW_DOWN;
	case KEY_PPAGE:
		return VIEW_PAGE_UP;
	case KEY_NPAGE:
		return VIEW_PAGE_DOWN;
	case KEY_HOME:
		return VIEW_HOME;
	case KEY_END:
		return VIEW_END;
	default:
		/* Of the other keys without a character none means anything here. */
		return key < KEY_MIN ? key : 0;
	}
}

bool screen_is_gone(const struct screen *screen)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	(void)screen;
	return poll(&input, 1, 0) == 1 && input.revents & (POLLHUP | POLLERR | POLLNVAL);
}
