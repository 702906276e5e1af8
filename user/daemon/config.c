/* SPDX-License-Identifier: GPL-2.0-only */
#include "daemon/config.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"
#include "steering/netns.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <string.h>

_Static_assert(MAX_CONFIG_LINE + 3 < INI_MAX_LINE, "libinih takes every line whole");

#define QUOTE_SIZE 256

#define SECTIONS "there are [defaults], [all] and [group ADDR:PORT]"

enum section {
	SECTION_NONE, /* before the first one */
	SECTION_DEFAULTS,
	SECTION_ALL,
	SECTION_GROUP,
	NR_SECTIONS,
};

static const char *const section_names[NR_SECTIONS] = { "", "[defaults]", "[all]", "[group]" };

/*
 * libinih reads line by line through read_line(), which takes the sections for itself: an address
 * with brackets would end libinih's sections too early, and it says nothing of empty ones.
 */
struct parser {
	const char *name; /* of the file */
	const char *at, *end; /* what was not read yet */
	unsigned int line; /* the one that was read last, from 1 */
	enum section section;
	unsigned int first[NR_SECTIONS]; /* the line where a section was begun, 0 for none */
	struct config config;
	struct failure *failure;
	int err; /* of the first mistake; nothing is read after it */
};

__attribute__((format(printf, 3, 4))) static void refuse(struct parser *parser, unsigned int line,
							 const char *format, ...)
{
	char message[sizeof(parser->failure->message)];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	parser->err = failure_set(parser->failure, EXIT_USAGE, EINVAL, "%s:%u: %s", parser->name,
				  line, message);
}

static const char *quote(const char *text, char ret_text[QUOTE_SIZE])
{
	text_escape(text, strlen(text), ret_text, QUOTE_SIZE);
	return ret_text;
}

/* Only at its end it is known which group a section is for. */
static void end_section(struct parser *parser)
{
	const struct config *config = &parser->config;
	const struct config_group *last;
	size_t i;

	if (parser->section != SECTION_GROUP || parser->err)
		return;
	last = &config->groups[config->nr_groups - 1];
	for (i = 0; i + 1 < config->nr_groups; i++) {
		if (!group_spec_is_same(&config->groups[i].spec, &last->spec))
			continue;
		refuse(parser, last->line,
		       "this group has a section already, in line %u: put everything into one, or "
		       "tell them apart by netns",
		       config->groups[i].line);
		return;
	}
}

static void begin_group(struct parser *parser, const char *name)
{
	struct config *config = &parser->config;
	char *text CLEANUP(cleanup_free) = strdup(name);
	struct config_group *groups;
	struct group_spec spec;
	char quoted[QUOTE_SIZE];

	if (!text || group_spec_parse(text, &spec)) {
		refuse(parser, parser->line,
		       "\"%s\" is not a group; a group is ADDR:PORT, [V6]:PORT, :PORT or PORT, "
		       "such as [group 127.0.0.1:8080]",
		       quote(name, quoted));
		return;
	}
	if (config->nr_groups == MAX_CONFIG_GROUPS) {
		refuse(parser, parser->line, "more than %d groups; [all] takes many at once",
		       MAX_CONFIG_GROUPS);
		return;
	}
	groups = reallocarray(config->groups, config->nr_groups + 1, sizeof(*groups));
	if (!groups) {
		refuse(parser, parser->line, "out of memory");
		return;
	}
	config->groups = groups;
	groups[config->nr_groups++] = (struct config_group){
		.text = TAKE_PTR(text),
		.spec = spec,
		.line = parser->line,
	};
}

static enum section section_find(const char *name)
{
	if (!strcmp(name, "defaults"))
		return SECTION_DEFAULTS;
	if (!strcmp(name, "all"))
		return SECTION_ALL;
	return !strncmp(name, "group ", 6) || !strcmp(name, "group") ? SECTION_GROUP : SECTION_NONE;
}

/* name: what is between the brackets. */
static void begin_section(struct parser *parser, const char *name)
{
	enum section section = section_find(name);
	char quoted[QUOTE_SIZE];

	end_section(parser);
	if (parser->err)
		return;
	if (section == SECTION_NONE) {
		refuse(parser, parser->line, "there is no section [%s]; " SECTIONS,
		       quote(name, quoted));
		return;
	}
	if (section == SECTION_GROUP)
		begin_group(parser, name + strlen("group") + strspn(name + strlen("group"), " \t"));
	else if (parser->first[section])
		refuse(parser, parser->line, "there is a section %s already, in line %u",
		       section_names[section], parser->first[section]);
	if (section == SECTION_ALL)
		parser->config.all = true;
	parser->section = section;
	parser->first[section] = parser->line;
}

/* Where a comment after the closing bracket begins, or the end. */
static char *section_end(char *line)
{
	char *comment;

	for (comment = line + 1; *comment; comment++)
		if (strchr(";#", *comment) && isspace((unsigned char)comment[-1]))
			break;
	while (comment > line && isspace((unsigned char)comment[-1]))
		comment--;
	return comment;
}

static void read_section(struct parser *parser, char *line)
{
	char *end = section_end(line), quoted[QUOTE_SIZE];

	*end = '\0';
	if (end == line + 1 || end[-1] != ']') {
		refuse(parser, parser->line, "\"%s\" does not end with a bracket; " SECTIONS,
		       quote(line, quoted));
		return;
	}
	end[-1] = '\0';
	begin_section(parser, line + 1);
}

/* The next line with the blanks at its ends removed: to libinih a blank at the start is a continuation. */
static bool next_line(struct parser *parser, const char **ret_line, size_t *ret_length)
{
	const char *line = parser->at, *end = memchr(line, '\n', (size_t)(parser->end - line));

	if (line == parser->end)
		return false;
	if (!end)
		end = parser->end;
	parser->at = end < parser->end ? end + 1 : end;
	parser->line++;
	while (line < end && isspace((unsigned char)*line))
		line++;
	while (line < end && isspace((unsigned char)end[-1]))
		end--;
	*ret_line = line;
	*ret_length = (size_t)(end - line);
	return true;
}

/* What fgets() is to a file. NULL ends it. */
static char *read_line(char *buffer, int size, void *stream)
{
	struct parser *parser = stream;
	const char *line;
	size_t length;

	if (parser->err || !next_line(parser, &line, &length))
		return NULL;
	if (memchr(line, '\0', length)) {
		refuse(parser, parser->line, "this line has a zero byte, which no text has");
		return NULL;
	}
	if (length > MAX_CONFIG_LINE || (int)length >= size) {
		refuse(parser, parser->line, "this line is too long; it may have %d characters",
		       MAX_CONFIG_LINE);
		return NULL;
	}
	memcpy(buffer, line, length);
	buffer[length] = '\0';
	if (buffer[0] == '[') {
		read_section(parser, buffer);
		buffer[0] = '\0';
	}
	return parser->err ? NULL : buffer;
}

static struct choice *current_choice(struct parser *parser)
{
	struct config *config = &parser->config;

	if (parser->section == SECTION_DEFAULTS)
		return &config->defaults;
	if (parser->section == SECTION_ALL)
		return &config->all_choice;
	return &config->groups[config->nr_groups - 1].choice;
}

static void refuse_key(struct parser *parser, const char *key)
{
	const struct setting *setting;
	char quoted[QUOTE_SIZE];
	size_t i;

	refuse(parser, parser->line, "%s has no key \"%s\"; it has", section_names[parser->section],
	       quote(key, quoted));
	if (parser->section == SECTION_GROUP)
		failure_add(parser->failure, " netns,");
	for (i = 0; parser->section == SECTION_ALL && i < NR_PATTERN_KEYS; i++)
		failure_add(parser->failure, " %s,", pattern_key_name((enum pattern_key)i));
	for (setting = settings_keys; setting->name; setting++)
		failure_add(parser->failure, "%s %s", setting == settings_keys ? "" : ",",
			    setting->name);
}

static void refuse_second(struct parser *parser, const char *key)
{
	refuse(parser, parser->line, "%s was given in this section already", key);
}

/* Hands on what a parser of a lower floor has to say. */
static void check(struct parser *parser, int err, const struct failure *failure)
{
	if (err)
		refuse(parser, parser->line, "%s", failure->message);
}

static void take_netns(struct parser *parser, const char *value)
{
	struct group_spec *spec = &parser->config.groups[parser->config.nr_groups - 1].spec;
	struct failure failure = {};

	if (spec->netns)
		refuse_second(parser, "netns");
	else
		check(parser, netns_parse("netns", value, &spec->netns, &failure), &failure);
}

static void take_pattern(struct parser *parser, enum pattern_key key, const char *value)
{
	struct patterns *patterns = &parser->config.patterns;
	struct failure failure = {};

	if (patterns_have(patterns, key))
		refuse_second(parser, pattern_key_name(key));
	else
		check(parser, patterns_add(patterns, key, value, &failure), &failure);
}

static void take_setting(struct parser *parser, const char *key, const char *value)
{
	struct choice *choice = current_choice(parser);
	struct failure failure = {};

	if (!setting_find(key))
		refuse_key(parser, key);
	else if (choice_has(choice, key))
		refuse_second(parser, key);
	else
		check(parser, choice_set(choice, key, value, &failure), &failure);
}

/* libinih's callback for KEY = VALUE; 0 is an error to it, and read_line() then ends the file. */
static int take_key(void *argument, const char *section, const char *key, const char *value)
{
	struct parser *parser = argument;
	enum pattern_key pattern;
	char quoted[QUOTE_SIZE];

	(void)section;
	if (parser->section == SECTION_NONE)
		refuse(parser, parser->line, "\"%s\" stands before the first section; " SECTIONS,
		       quote(key, quoted));
	else if (parser->section == SECTION_GROUP && !strcmp(key, "netns"))
		take_netns(parser, value);
	else if (parser->section == SECTION_ALL && pattern_key_find(key, &pattern))
		take_pattern(parser, pattern, value);
	else
		take_setting(parser, key, value);
	return !parser->err;
}

/* Some editors put a mark at the start of what they write. */
static const char *skip_mark(const char *text, size_t size)
{
	return size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? text + 3 : text;
}

int config_parse(const char *name, const char *text, size_t size, struct config *ret_config,
		 struct failure *failure)
{
	struct parser parser = {
		.name = name,
		.at = skip_mark(text, size),
		.end = text + size,
		.failure = failure,
	};
	int bad_line = ini_parse_stream(read_line, &parser, take_key, &parser);

	/* libinih goes on after a line that it does not understand; what we refused comes later. */
	if (bad_line > 0 && (!parser.err || (unsigned int)bad_line < parser.line))
		refuse(&parser, (unsigned int)bad_line,
		       "this is neither KEY = VALUE nor a [section] nor a # comment");
	if (!parser.err && bad_line)
		refuse(&parser, parser.line, "out of memory");
	end_section(&parser);
	if (parser.err)
		config_done(&parser.config);
	else
		*ret_config = parser.config;
	return parser.err;
}

int config_read(const char *path, struct config *ret_config, struct failure *failure)
{
	char *text CLEANUP(cleanup_free) = NULL;
	size_t size;
	int err = file_read(path, MAX_CONFIG_BYTES, &text, &size);

	if (!err)
		return config_parse(path, text, size, ret_config, failure);
	if (err == -EFBIG)
		return failure_set(failure, EXIT_USAGE, EFBIG,
				   "%s is larger than %d bytes, so it is no configuration", path,
				   MAX_CONFIG_BYTES);
	if (err == -ENODEV)
		return failure_set(failure, EXIT_USAGE, ENODEV,
				   "cannot read %s: not a regular file, and it is read again on "
				   "SIGHUP",
				   path);
	if (err == -EACCES)
		return failure_set(failure, EXIT_USAGE, EACCES,
				   "cannot read the configuration %s: %s; run has to be allowed to "
				   "read it without CAP_DAC_OVERRIDE, also as root",
				   path, strerror(EACCES));
	return failure_set(failure, EXIT_USAGE, -err, "cannot read the configuration %s: %s", path,
			   strerror(-err));
}

void config_done(struct config *config)
{
	size_t i;

	for (i = 0; i < config->nr_groups; i++)
		free(config->groups[i].text);
	free(config->groups);
	*config = (struct config){};
}
