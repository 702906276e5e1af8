/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/status.h"

#include "base/cleanup.h"
#include "base/pulse.h"
#include "show/status.h"
#include "steering/lookout.h"

#include <errno.h>
#include <stdio.h>

/* A whole frame goes out at once, so that a terminal shows no half of one. */
#define FRAME_BYTES 65536

/* The cursor to the top left, and the rest of the screen cleared: understood by every terminal in use. */
#define CLEAR_SCREEN "\x1b[H\x1b[J"

static void cleanup_lookout(struct lookout **lookout)
{
	lookout_free(*lookout);
}

static int print_frame(const struct status *status, const struct options *options, bool is_first)
{
	int err;

	if (options->json)
		return status_print_json_line(status, stdout);
	if (isatty(STDOUT_FILENO))
		fputs(CLEAR_SCREEN, stdout);
	else if (!is_first)
		fputc('\n', stdout);
	if (options->has_group && !status->nr_groups)
		err = printf("%s is not steered any more\n", options->group.text) < 0 ? -EIO : 0;
	else
		err = status_print_table(status, stdout);
	return err;
}

static int print_frames(struct pulse *pulse, struct lookout *lookout, const struct options *options,
			struct failure *failure)
{
	struct status status CLEANUP(status_done) = {};
	bool is_first = true;
	int err = 0, reasons;

	for (;;) {
		reasons = pulse_wait(pulse, -1);
		if (reasons < 0 || reasons & PULSE_END)
			return reasons < 0 ? reasons : 0;
		if (!(reasons & PULSE_BEAT))
			continue;
		err = lookout_renew(lookout, &status, failure);
		if (!err)
			err = print_frame(&status, options, is_first);
		if (!err && fflush(stdout))
			err = -errno;
		if (err)
			return err;
		is_first = false;
	}
}

int status_watch(const struct options *options, struct failure *failure)
{
	struct lookout *lookout CLEANUP(cleanup_lookout) = NULL;
	struct pulse pulse CLEANUP(pulse_done) = PULSE_NONE;
	int err;

	setvbuf(stdout, NULL, _IOFBF, FRAME_BYTES);
	err = pulse_init(&pulse, options->interval_ns);
	if (!err)
		err = lookout_new(options->has_group ? &options->group : NULL, &lookout, failure);
	return err ? err : print_frames(&pulse, lookout, options, failure);
}
