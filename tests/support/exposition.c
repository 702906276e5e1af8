/* SPDX-License-Identifier: GPL-2.0-only */
#include "support/exposition.h"

#include <criterion/criterion.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "[a-z_][a-z0-9_]*"
#define LABEL NAME "=\"([^\"\\]|\\\\[\"\\n])*\""
#define PRINTABLE "[ -~]+"

#define NAME_BYTES 128
#define LINE_BYTES 1024

enum line_kind {
	LINE_HELP,
	LINE_TYPE,
	LINE_SAMPLE,
	NR_LINE_KINDS,
};

static const char *const patterns[NR_LINE_KINDS] = {
	[LINE_HELP] = "^# HELP (" NAME ") " PRINTABLE "$",
	[LINE_TYPE] = "^# TYPE (" NAME ") (counter|gauge)$",
	[LINE_SAMPLE] = "^(" NAME ")(\\{" LABEL "(," LABEL ")*\\})? [0-9]+(\\.[0-9]+)?$",
};

struct reader {
	const char *text; /* all of it */
	const char *line; /* the one that is read, in text */
	char copy[LINE_BYTES]; /* the same without its end */
	char family[NAME_BYTES]; /* that HELP named last */
	bool has_type;
	regex_t patterns[NR_LINE_KINDS];
};

static enum line_kind line_kind(const char *line)
{
	if (line[0] != '#')
		return LINE_SAMPLE;
	return strncmp(line, "# TYPE", 6) ? LINE_HELP : LINE_TYPE;
}

/* True if an earlier line begins with the same length bytes. */
static bool stands_before(const struct reader *reader, size_t length)
{
	const char *line;

	for (line = reader->text; line < reader->line; line = strchr(line, '\n') + 1)
		if (!strncmp(line, reader->line, length))
			return true;
	return false;
}

static bool is_counter(const char *name)
{
	size_t length = strlen(name);

	return length > 6 && !strcmp(name + length - 6, "_total");
}

static const char *read_help(struct reader *reader, const char *name)
{
	if (stands_before(reader, strlen("# HELP ") + strlen(name) + 1))
		return "the family has its HELP already";
	snprintf(reader->family, sizeof(reader->family), "%s", name);
	reader->has_type = false;
	return NULL;
}

static const char *read_type(struct reader *reader, const char *name)
{
	if (strcmp(name, reader->family) != 0)
		return "TYPE without HELP before it";
	if (reader->has_type)
		return "the family has its TYPE already";
	if (is_counter(name) != (strstr(reader->copy, " counter") != NULL))
		return "_total is for counters, and they need it";
	reader->has_type = true;
	return NULL;
}

/* What is between the braces names no label twice. */
static bool names_label_twice(const char *series)
{
	char labels[64 * NAME_BYTES] = "", name[NAME_BYTES + 2];
	const char *at = strchr(series, '{');

	while (at && *at && *at != '}') {
		size_t length = strcspn(at + 1, "=");

		snprintf(name, sizeof(name), ",%.*s=", (int)length, at + 1);
		if (strstr(labels, name))
			return true;
		snprintf(labels + strlen(labels), sizeof(labels) - strlen(labels), "%s", name);
		for (at += length + 3; *at != '"'; at++)
			at += *at == '\\';
		at++;
	}
	return false;
}

static const char *read_sample(struct reader *reader, const char *name)
{
	if (strcmp(name, reader->family) != 0 || !reader->has_type)
		return "not in the family whose HELP and TYPE stand before it";
	if (names_label_twice(reader->copy))
		return "a label stands twice";
	if (stands_before(reader, (size_t)(strrchr(reader->copy, ' ') + 1 - reader->copy)))
		return "the series stands twice";
	return NULL;
}

/* What is wrong with a line, or NULL. */
static const char *read_line(struct reader *reader)
{
	enum line_kind kind = line_kind(reader->copy);
	char name[NAME_BYTES];
	regmatch_t matches[2];

	if (regexec(&reader->patterns[kind], reader->copy, 2, matches, 0))
		return "not a line of the format";
	snprintf(name, sizeof(name), "%.*s", (int)(matches[1].rm_eo - matches[1].rm_so),
		 reader->copy + matches[1].rm_so);
	if (kind == LINE_HELP)
		return read_help(reader, name);
	return kind == LINE_TYPE ? read_type(reader, name) : read_sample(reader, name);
}

static bool read_lines(struct reader *reader, char ret_complaint[COMPLAINT_BYTES])
{
	const char *end, *problem;

	for (reader->line = reader->text; *reader->line; reader->line = end + 1) {
		end = strchr(reader->line, '\n');
		if (!end) {
			snprintf(ret_complaint, COMPLAINT_BYTES, "the last line has no end");
			return false;
		}
		snprintf(reader->copy, sizeof(reader->copy), "%.*s", (int)(end - reader->line),
			 reader->line);
		problem = read_line(reader);
		if (!problem)
			continue;
		snprintf(ret_complaint, COMPLAINT_BYTES, "%s: %.300s", problem, reader->copy);
		return false;
	}
	return true;
}

bool exposition_is_valid(const char *text, char ret_complaint[COMPLAINT_BYTES])
{
	struct reader reader = { .text = text };
	bool is_valid;
	size_t i;

	for (i = 0; i < NR_LINE_KINDS; i++)
		cr_assert_eq(regcomp(&reader.patterns[i], patterns[i], REG_EXTENDED), 0);
	is_valid = read_lines(&reader, ret_complaint);
	for (i = 0; i < NR_LINE_KINDS; i++)
		regfree(&reader.patterns[i]);
	return is_valid;
}

size_t expect_exposition(const char *text)
{
	char complaint[COMPLAINT_BYTES];
	const char *line = text;
	size_t nr_series = 0;

	cr_assert(exposition_is_valid(text, complaint), "%s", complaint);
	for (; *line; line = strchr(line, '\n') + 1)
		nr_series += line[0] != '#';
	return nr_series;
}

uint64_t exposition_value(const char *text, const char *series)
{
	size_t length = strlen(series);
	const char *line = text;

	for (; line && *line; line = strchr(line, '\n'), line += line != NULL)
		if (!strncmp(line, series, length) && line[length] == ' ')
			return strtoull(line + length + 1, NULL, 10);
	cr_assert_fail("there is no %s in:\n%s", series, text);
	return 0;
}
