/* SPDX-License-Identifier: GPL-2.0-only */
#include "daemon/orders.h"
#include "steering/place.h"

#include <string.h>

/* Where nothing is chosen. */
static const struct choice undecided;

int orders_init(const struct daemon_options *options, struct orders *ret_orders,
		struct failure *failure)
{
	struct orders orders = { .options = options };
	int err = 0;

	if (options->config_path)
		err = config_read(options->config_path, &orders.config, failure);
	if (!err)
		*ret_orders = orders;
	return err;
}

void orders_done(struct orders *orders)
{
	config_done(&orders->config);
}

static bool is_argument(const struct orders *orders, const struct group *group)
{
	size_t i;

	for (i = 0; i < orders->options->nr_specs; i++)
		if (group_spec_matches(&orders->options->specs[i], group))
			return true;
	return false;
}

static unsigned int precision_of(const struct group_spec *spec)
{
	return 2 * (spec->has_address ? 1 : 0) + (spec->netns ? 1 : 0);
}

/* The section of the group; NULL if it has none. */
static const struct config_group *find_section(const struct orders *orders,
					       const struct group *group)
{
	const struct config_group *best = NULL;
	size_t i;

	for (i = 0; i < orders->config.nr_groups; i++) {
		const struct config_group *section = &orders->config.groups[i];

		if (!group_spec_matches(&section->spec, group))
			continue;
		if (!best || precision_of(&section->spec) > precision_of(&best->spec))
			best = section;
	}
	return best;
}

static bool file_takes(const struct orders *orders, const struct group *group)
{
	return orders->config.all && patterns_match(&orders->config.patterns, group);
}

bool orders_name(const struct orders *orders, const struct group *group)
{
	return is_argument(orders, group) || find_section(orders, group);
}

bool orders_keep(const struct orders *orders, const struct group *group)
{
	const struct daemon_options *options = orders->options;

	return orders_name(orders, group) ||
	       (options->all && patterns_match(&options->patterns, group)) ||
	       file_takes(orders, group);
}

static bool spec_concerns(const struct group_spec *spec, const struct event *event)
{
	return spec->port == event->port && (!spec->netns || spec->netns == event->netns);
}

bool orders_concern(const struct orders *orders, const struct event *event)
{
	size_t i;

	if (orders->options->all || orders->config.all)
		return true;
	for (i = 0; i < orders->options->nr_specs; i++)
		if (spec_concerns(&orders->options->specs[i], event))
			return true;
	for (i = 0; i < orders->config.nr_groups; i++)
		if (spec_concerns(&orders->config.groups[i].spec, event))
			return true;
	return false;
}

/* section: what the section that counts has chosen. */
static void choose(const struct orders *orders, const struct choice *section,
		   struct choice *ret_choice)
{
	*ret_choice = orders->options->choice;
	choice_fill(ret_choice, section);
	choice_fill(ret_choice, &orders->config.defaults);
}

void orders_choose(const struct orders *orders, const struct group *group,
		   struct choice *ret_choice)
{
	const struct config_group *section = find_section(orders, group);

	if (!section && !is_argument(orders, group) && file_takes(orders, group))
		choose(orders, &orders->config.all_choice, ret_choice);
	else
		choose(orders, section ? &section->choice : &undecided, ret_choice);
}

static void print_settings(const struct choice *choice, FILE *out)
{
	static const struct group nobody;
	const struct setting *setting;
	char text[SETTING_TEXT_SIZE];
	struct settings settings;

	settings_init(&nobody, POLICY_LEAST_LOADED, &settings);
	choice_apply(choice, &settings);
	for (setting = settings_keys; setting->name; setting++) {
		setting->print(&settings, text);
		fprintf(out, "%s %s %s", setting == settings_keys ? ":" : ",", setting->name, text);
	}
	fputc('\n', out);
}

/* What a spec names, as far as it says. */
static void group_of_spec(const struct group_spec *spec, struct group *ret_group)
{
	*ret_group = (struct group){
		.family = spec->family,
		.port = spec->port,
		.netns = spec->netns,
	};
	memcpy(ret_group->address, spec->address, sizeof(spec->address));
}

static void print_spec(const struct orders *orders, const struct group_spec *spec, FILE *out)
{
	const struct config_group *section;
	struct choice choice;
	struct group group;

	group_of_spec(spec, &group);
	section = find_section(orders, &group);
	choose(orders, section ? &section->choice : &undecided, &choice);
	fputs(spec->text, out);
	if (spec->netns)
		fprintf(out, " --netns %u", spec->netns);
	if (spec->pid)
		fprintf(out, " --pid %u", spec->pid);
	print_settings(&choice, out);
}

static void print_all(const struct orders *orders, const struct patterns *patterns,
		      const struct choice *section, FILE *out)
{
	char text[4 * PATTERN_SIZE + 1];
	struct choice choice;
	size_t i;

	choose(orders, section, &choice);
	fputs("all", out);
	for (i = 0; i < patterns->nr; i++) {
		text_escape(patterns->items[i].text, PATTERN_SIZE, text, sizeof(text));
		fprintf(out, " %s=%s", pattern_key_name(patterns->items[i].key), text);
	}
	print_settings(&choice, out);
}

/* A group that the command line and the file name in the same way has one line. */
static bool is_printed(const struct orders *orders, const struct group_spec *spec)
{
	size_t i;

	for (i = 0; i < orders->options->nr_specs; i++)
		if (group_spec_is_same(&orders->options->specs[i], spec))
			return true;
	return false;
}

void orders_print(const struct orders *orders, FILE *out)
{
	const struct daemon_options *options = orders->options;
	const struct config *config = &orders->config;
	size_t i;

	for (i = 0; i < options->nr_specs; i++)
		print_spec(orders, &options->specs[i], out);
	for (i = 0; i < config->nr_groups; i++)
		if (!is_printed(orders, &config->groups[i].spec))
			print_spec(orders, &config->groups[i].spec, out);
	if (options->all)
		print_all(orders, &options->patterns, &undecided, out);
	if (config->all)
		print_all(orders, &config->patterns, &config->all_choice, out);
}
