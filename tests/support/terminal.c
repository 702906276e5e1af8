/* SPDX-License-Identifier: GPL-2.0-only */
#include "support/terminal.h"
#include "base/cleanup.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

/* What xterm is sent to leave the screen on which programs draw. */
#define LEAVE_SCREEN "\x1b[?1049l"

/* In the child. */
static int become_terminal(void *argument)
{
	const struct terminal *terminal = argument;

	if (setsid() < 0 || ioctl(terminal->slave, TIOCSCTTY, 0) ||
	    dup2(terminal->slave, STDIN_FILENO) < 0 || dup2(terminal->slave, STDOUT_FILENO) < 0)
		return -errno;
	if (terminal->type ? setenv("TERM", terminal->type, 1) : unsetenv("TERM"))
		return -errno;
	return 0;
}

void terminal_start_list(struct terminal *ret_terminal, const char *type, unsigned short nr_rows,
			 unsigned short nr_columns, const char *const *arguments)
{
	struct winsize size = { .ws_row = nr_rows, .ws_col = nr_columns };
	struct program_setup setup = { become_terminal, ret_terminal };

	*ret_terminal = (struct terminal){ .type = type, .drawn = calloc(1, 1) };
	cr_assert_not_null(ret_terminal->drawn);
	cr_assert_eq(openpty(&ret_terminal->master, &ret_terminal->slave, NULL, NULL, &size), 0,
		     "openpty: %s", strerror(errno));
	cr_assert_eq(fcntl(ret_terminal->master, F_SETFL, O_NONBLOCK), 0);
	cr_assert_eq(fcntl(ret_terminal->master, F_SETFD, FD_CLOEXEC), 0);
	cr_assert_eq(fcntl(ret_terminal->slave, F_SETFD, FD_CLOEXEC), 0);
	cr_assert_eq(tcgetattr(ret_terminal->slave, &ret_terminal->modes), 0);
	program_start(&ret_terminal->program, &setup, arguments);
}

void terminal_done(struct terminal *terminal)
{
	cleanup_fd(&terminal->master);
	cleanup_fd(&terminal->slave);
	free(terminal->drawn);
	*terminal = (struct terminal){ .master = -1, .slave = -1 };
}

void terminal_press(struct terminal *terminal, const char *keys)
{
	cr_assert_eq(write(terminal->master, keys, strlen(keys)), (ssize_t)strlen(keys));
}

void terminal_resize(struct terminal *terminal, unsigned short nr_rows, unsigned short nr_columns)
{
	struct winsize size = { .ws_row = nr_rows, .ws_col = nr_columns };

	cr_assert_eq(ioctl(terminal->master, TIOCSWINSZ, &size), 0);
}

/* Takes what has been drawn by now. */
static void read_drawn(struct terminal *terminal)
{
	char bytes[4096];
	ssize_t length;

	while ((length = read(terminal->master, bytes, sizeof(bytes))) > 0) {
		terminal->drawn = realloc(terminal->drawn, terminal->length + (size_t)length + 1);
		cr_assert_not_null(terminal->drawn);
		memcpy(terminal->drawn + terminal->length, bytes, (size_t)length);
		terminal->length += (size_t)length;
		terminal->drawn[terminal->length] = '\0';
	}
}

struct awaited {
	struct terminal *terminal;
	const char *words;
};

static bool is_drawn(void *argument)
{
	const struct awaited *awaited = argument;
	struct terminal *terminal = awaited->terminal;
	const char *found;

	read_drawn(terminal);
	found = strstr(terminal->drawn + terminal->seen, awaited->words);
	if (found)
		terminal->seen = (size_t)(found - terminal->drawn) + strlen(awaited->words);
	return found != NULL;
}

void terminal_await(struct terminal *terminal, const char *words)
{
	struct awaited awaited = { terminal, words };

	cr_assert(wait_until(is_drawn, &awaited, DEADLINE_MS), "\"%s\" is never drawn after \"%s\"",
		  words, terminal->drawn + terminal->seen);
}

struct ending {
	struct terminal *terminal;
	int status;
};

static bool has_ended(void *argument)
{
	struct ending *ending = argument;

	/* A program that nobody reads from would not end. */
	read_drawn(ending->terminal);
	return waitpid(ending->terminal->program.pid, &ending->status, WNOHANG) > 0;
}

void terminal_wait(struct terminal *terminal, struct said *ret_said)
{
	struct ending ending = { terminal, 0 };

	cr_assert(wait_until(has_ended, &ending, DEADLINE_MS), "it does not end");
	read_drawn(terminal);
	program_collect(&terminal->program, ending.status, ret_said);
}

void expect_terminal_restored(const struct terminal *terminal, const char *what)
{
	struct termios modes;

	cr_assert_eq(tcgetattr(terminal->slave, &modes), 0);
	cr_expect_eq(modes.c_lflag, terminal->modes.c_lflag, "%s: input is read differently", what);
	cr_expect_eq(modes.c_iflag, terminal->modes.c_iflag, "%s", what);
	cr_expect_eq(modes.c_oflag, terminal->modes.c_oflag, "%s", what);
	cr_expect(strstr(terminal->drawn, LEAVE_SCREEN), "%s: the screen is not left", what);
}
