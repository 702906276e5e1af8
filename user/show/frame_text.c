/* SPDX-License-Identifier: GPL-2.0-only */
#include "show/frame.h"

#include "base/text.h"
#include "steering/names.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define NAME_TEXT_SIZE (4 * COMM_SIZE + 1)

/* How wide the columns are that not every terminal has room for; 0 leaves one out. */
struct columns {
	int command;
	int state;
	int weight;
	int held_bar;
	int queued;
	int queued_bar;
};

/* Slot, pid, state, held, queued and rate take 40 columns, the least that a terminal should have. */
#define WITH_COMMAND 60
#define WITH_BARS 80

/* Five columns are left in 80; a longer bar than forty is not easier to read. */
#define MIN_BAR 5
#define MAX_BAR 40

static struct columns columns_of_width(size_t width)
{
	struct columns columns = { .state = 5, .queued = 6 };
	int rest = (int)width - WITH_BARS;

	if (width >= WITH_COMMAND) {
		columns.command = 12;
		columns.state = 10;
	}
	if (width < WITH_BARS)
		return columns;
	columns.queued = 9;
	columns.weight = 6;
	/* What is left is for the bars, once the longest plain name fits. */
	columns.command += rest < 4 ? rest : 4;
	rest -= rest < 4 ? rest : 4;
	columns.held_bar = rest < 2 * (MAX_BAR - MIN_BAR) ? MIN_BAR + rest / 2 : MAX_BAR;
	columns.queued_bar = columns.held_bar;
	return columns;
}

/* A line under construction, cut at its width. */
struct line {
	char *text; /* width + 1 bytes */
	size_t width;
	size_t used;
};

static struct line line_start(char *text, size_t width)
{
	text[0] = '\0';
	return (struct line){ .text = text, .width = width };
}

__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length =
		vsnprintf(line->text + line->used, line->width + 1 - line->used, format, arguments);
	va_end(arguments);
	if (length > 0)
		line->used += (size_t)length;
	if (line->used > line->width)
		line->used = line->width;
}

static void finish(struct line *line)
{
	while (line->used && line->text[line->used - 1] == ' ')
		line->used--;
	line->text[line->used] = '\0';
}

/* Whatever is not nothing shows. */
static void add_bar(struct line *line, int width, uint64_t part, uint64_t whole)
{
	uint64_t filled, i;

	if (!width)
		return;
	filled = whole ? (part * (uint64_t)width + whole / 2) / whole : 0;
	if (part && !filled)
		filled = 1;
	add(line, " ");
	for (i = 0; i < (uint64_t)width; i++)
		add(line, "%c", i < filled ? '#' : ' ');
}

static void add_rate(struct line *line, int width, double rate)
{
	if (rate < 0)
		add(line, "%*s", width, "-");
	else
		add(line, "%*.*f", width, rate < 10000 ? 1 : 0, rate);
}

static const char *state_text(const struct status_listener *listener)
{
	if (listener->gone)
		return "gone";
	return listener->draining ? "draining" : worker_state_name(listener->state);
}

static void add_queued(struct line *line, const struct columns *columns,
		       const struct status_listener *listener)
{
	char text[32];

	if (columns->queued_bar)
		snprintf(text, sizeof(text), "%u/%u", listener->queued, listener->backlog);
	else
		snprintf(text, sizeof(text), "%u", listener->queued);
	add(line, " %*s", columns->queued, text);
	add_bar(line, columns->queued_bar, listener->queued, listener->backlog);
}

static void add_listener(struct line *line, const struct frame_row *row)
{
	const struct columns columns = columns_of_width(line->width);
	const struct status_listener *listener = row->listener;
	char comm[NAME_TEXT_SIZE];

	text_escape(listener->comm, sizeof(listener->comm), comm, sizeof(comm));
	add(line, "%4u %7u", listener->slot, listener->pid);
	if (columns.command)
		add(line, " %-*.*s", columns.command, columns.command, comm);
	add(line, " %-*.*s", columns.state, columns.state, state_text(listener));
	if (columns.weight)
		add(line, " %*u", columns.weight, listener->weight);
	add(line, " %6" PRIu64, listener->held);
	add_bar(line, columns.held_bar, listener->held, row->most_held);
	add_queued(line, &columns, listener);
	add(line, " ");
	add_rate(line, 7, row->rate);
}

static void add_group(struct line *line, const struct status_group *group)
{
	add(line, "%s: ", group->name);
	if (!group->steered)
		add(line, "NOT STEERED, ");
	add(line, "%s, %zu listener%s", policy_name(group->policy), group->nr_listeners,
	    group->nr_listeners == 1 ? "" : "s");
	if (group->nr_missing)
		add(line, ", %u WITHOUT A SLOT", group->nr_missing);
	add(line, ", netns %u", group->netns);
}

/* Connections that are selected always show, other outcomes once there was one. */
static void add_rates(struct line *line, const struct frame *frame, const struct frame_row *row)
{
	size_t i;

	add(line, "per second:");
	for (i = 0; i < NR_OUTCOMES; i++) {
		uint64_t count = row->group->outcomes[i];

		if (i != OUTCOME_SELECTED && !count)
			continue;
		add(line, "%s %s ", i == OUTCOME_SELECTED ? "" : ",",
		    outcome_name((enum outcome)i));
		add_rate(line, 0,
			 row->before && count >= row->before->outcomes[i] ?
				 (double)(count - row->before->outcomes[i]) / frame->seconds :
				 -1);
	}
}

void frame_line(const struct frame *frame, size_t row, size_t width, char *ret_text)
{
	struct line line = line_start(ret_text, width);

	if (row >= frame->nr_rows)
		return;
	switch (frame->rows[row].kind) {
	case FRAME_GROUP:
		add_group(&line, frame->rows[row].group);
		break;
	case FRAME_RATES:
		add_rates(&line, frame, &frame->rows[row]);
		break;
	case FRAME_LISTENER:
		add_listener(&line, &frame->rows[row]);
		break;
	case FRAME_NOTE:
		add(&line, "No group is steered.");
		break;
	default:
		break;
	}
	finish(&line);
}

void frame_columns(size_t width, char *ret_text)
{
	const struct columns columns = columns_of_width(width);
	struct line line = line_start(ret_text, width);

	add(&line, "%4s %7s", "SLOT", "PID");
	if (columns.command)
		add(&line, " %-*s", columns.command, "COMMAND");
	add(&line, " %-*s", columns.state, "STATE");
	if (columns.weight)
		add(&line, " %*s", columns.weight, "WEIGHT");
	add(&line, " %6s", "HELD");
	add_bar(&line, columns.held_bar, 0, 1);
	add(&line, " %*s", columns.queued, "QUEUED");
	add_bar(&line, columns.queued_bar, 0, 1);
	add(&line, " %7s", "RATE");
	finish(&line);
}

void frame_title(const struct frame *frame, const struct view *view, const char *time, size_t width,
		 char *ret_text)
{
	struct line line = line_start(ret_text, width);

	add(&line, "%s%s  by %s%s", view->paused ? "PAUSED " : "", time, sort_key_name(view->sort),
	    view->reverse ? ", reversed" : "");
	add(&line, "  %zu group%s, %zu listener%s", frame->nr_groups,
	    frame->nr_groups == 1 ? "" : "s", frame->nr_listeners,
	    frame->nr_listeners == 1 ? "" : "s");
	finish(&line);
}
