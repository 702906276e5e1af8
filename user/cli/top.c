/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/cli.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/pulse.h"
#include "cli/options.h"
#include "show/screen.h"
#include "steering/lookout.h"

#include <errno.h>
#include <time.h>

#define DEFAULT_WIDTH 80

const char top_help[] =
	"Shows the steered groups and their listeners on the whole terminal, again and again.\n"
	"RATE is how many connections a second are steered to a listener. A bar of HELD is\n"
	"full at the listener that holds most of its group, one of QUEUED when the accept\n"
	"queue is full; a terminal narrower than 80 columns leaves them out.\n"
	"\n"
	"Keys: arrows, page up and down, home and end move; s sorts by slot, pid, held,\n"
	"queued or rate in turn; r reverses; p pauses; ? shows the keys; q quits.\n";

const char top_option_help[] =
	"      --interval TIME look that often: seconds, or a time such as 500ms (default 1)\n"
	"      --once          look twice, one interval apart, print the frame as plain text,\n"
	"                      and end; needs no terminal\n"
	"      --width COLUMNS how wide that text may be (default $COLUMNS, or 80)\n";

const char top_more[] =
	"Exit codes: 0 ended by q or a signal; 1 failed, or no terminal that can be drawn on;\n"
	"2 usage; 3 a right is missing; 4 the GROUP is not steered.\n"
	"\n"
	"Examples:\n"
	"  socksteer top\n"
	"  socksteer top :8080 --interval 200ms\n"
	"  socksteer top --once --width 120\n";

/* The last two looks; owned. */
struct looks {
	struct status before;
	struct status now;
	uint64_t before_ns; /* CLOCK_MONOTONIC */
	uint64_t now_ns; /* 0 until the first look */
};

static void looks_done(struct looks *looks)
{
	status_done(&looks->before);
	status_done(&looks->now);
}

static void cleanup_lookout(struct lookout **lookout)
{
	lookout_free(*lookout);
}

static void cleanup_screen(struct screen **screen)
{
	screen_free(*screen);
}

static int looks_renew(struct looks *looks, struct lookout *lookout, struct failure *failure)
{
	struct status status CLEANUP(status_done) = {};
	int err = lookout_renew(lookout, &status, failure);

	if (err)
		return err;
	status_done(&looks->before);
	looks->before = looks->now;
	looks->before_ns = looks->now_ns;
	looks->now = status;
	looks->now_ns = clock_now_ns();
	status = (struct status){};
	return 0;
}

static int looks_frame(const struct looks *looks, const struct view *view, struct frame *ret_frame)
{
	uint64_t elapsed_ns = looks->before_ns ? looks->now_ns - looks->before_ns : 0;

	return frame_build(&looks->before, &looks->now, elapsed_ns, view, ret_frame);
}

static void time_text(char *ret_text, size_t size)
{
	time_t now = time(NULL);
	struct tm parts;

	localtime_r(&now, &parts);
	strftime(ret_text, size, "%H:%M:%S", &parts);
}

static int draw(struct screen *screen, const struct looks *looks, struct view *view)
{
	struct frame frame CLEANUP(frame_done) = {};
	char text[16];
	int err = looks_frame(looks, view, &frame);

	if (err)
		return err;
	view_clamp(view, frame.nr_rows, screen_list_height(screen));
	time_text(text, sizeof(text));
	screen_draw(screen, &frame, view, text);
	return 0;
}

/* False when it is time to end. */
static bool take_keys(struct screen *screen, const struct looks *looks, struct view *view)
{
	struct frame frame CLEANUP(frame_done) = {};
	int key;

	if (screen_is_gone(screen) || looks_frame(looks, view, &frame))
		return false;
	while ((key = screen_read_key(screen)) != VIEW_NO_KEY)
		if (!view_press(view, key, frame.nr_rows, screen_list_height(screen)))
			return false;
	return true;
}

/* The first look comes before the terminal is taken, so that a GROUP that is not there is just said. */
static int watch(struct pulse *pulse, struct lookout *lookout, struct failure *failure)
{
	struct looks looks CLEANUP(looks_done) = {};
	struct screen *screen CLEANUP(cleanup_screen) = NULL;
	struct view view = {};
	int err, reasons;

	err = looks_renew(&looks, lookout, failure);
	if (!err)
		err = screen_new(&screen, failure);
	if (!err)
		err = draw(screen, &looks, &view);
	while (!err) {
		reasons = pulse_wait(pulse, STDIN_FILENO);
		if (reasons < 0 || reasons & PULSE_END)
			return reasons < 0 ? reasons : 0;
		if (reasons & PULSE_RESIZED)
			screen_resize(screen);
		if (reasons & PULSE_INPUT && !take_keys(screen, &looks, &view))
			return 0;
		if (reasons & PULSE_BEAT && !view.paused)
			err = looks_renew(&looks, lookout, failure);
		if (!err)
			err = draw(screen, &looks, &view);
	}
	return err;
}

static int print_frame(const struct looks *looks, size_t width)
{
	struct frame frame CLEANUP(frame_done) = {};
	const struct view view = {};
	char text[MAX_WIDTH + 1];
	int err = looks_frame(looks, &view, &frame);
	size_t i;

	if (err)
		return err;
	if (frame.nr_listeners) {
		frame_columns(width, text);
		puts(text);
	}
	for (i = 0; i < frame.nr_rows; i++) {
		frame_line(&frame, i, width, text);
		puts(text);
	}
	return 0;
}

static size_t width_of(const struct options *options)
{
	const char *columns = getenv("COLUMNS");
	uint64_t width;

	if (options->width)
		return options->width;
	if (columns && !text_to_u64(columns, MIN_WIDTH, MAX_WIDTH, &width))
		return width;
	return DEFAULT_WIDTH;
}

/* Two beats: without an earlier look there are no rates. */
static int print_once(struct pulse *pulse, struct lookout *lookout, size_t width,
		      struct failure *failure)
{
	struct looks looks CLEANUP(looks_done) = {};
	int err = 0, reasons;

	while (!err && !looks.before_ns) {
		reasons = pulse_wait(pulse, -1);
		if (reasons < 0 || reasons & PULSE_END)
			return reasons < 0 ? reasons : 0;
		if (reasons & PULSE_BEAT)
			err = looks_renew(&looks, lookout, failure);
	}
	return err ? err : print_frame(&looks, width);
}

static int run(const struct options *options, struct failure *failure)
{
	struct lookout *lookout CLEANUP(cleanup_lookout) = NULL;
	struct pulse pulse CLEANUP(pulse_done) = PULSE_NONE;
	int err;

	err = pulse_init(&pulse, options->interval_ns);
	if (!err)
		err = lookout_new(options->has_group ? &options->group : NULL, &lookout, failure);
	if (!err && options->once)
		return print_once(&pulse, lookout, width_of(options), failure);
	return err ? err : watch(&pulse, lookout, failure);
}

int command_top(int argc, char **argv, struct failure *failure)
{
	const struct command *command = command_find("top");
	struct options options;
	int err;

	err = options_parse(command, argc, argv, &options, failure);
	if (err)
		return err;
	if (options.help) {
		help_print_command(command, stdout);
		return 0;
	}
	if (options.width && !options.once)
		return options_refuse_usage(command, "--width is for --once", failure);
	return run(&options, failure);
}
