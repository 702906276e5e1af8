/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/cli.h"

#include "base/text.h"
#include "cli/options.h"
#include "cli/set.h"
#include "show/settings.h"
#include "steering/operate.h"

#include <errno.h>
#include <string.h>

const char set_help[] =
	"Changes settings of a steered group while it runs; it acts from the next connection\n"
	"on. Either all of them are set or none: a KEY or VALUE that is wrong changes nothing.\n"
	"Without any KEY=VALUE it prints the settings as they are, in the same form.\n";

const char set_option_help[] =
	"      --json          print the settings, as they are afterwards, as JSON\n";

const char set_more[] = "Exit codes: 0 done; 1 failed; 2 usage; 3 a right is missing; 4 the group "
			"is not\n"
			"steered.\n"
			"\n"
			"Examples:\n"
			"  socksteer set :8080\n"
			"  socksteer set :8080 policy=p2c slow-start=30s\n"
			"  socksteer set :8080 --json | jq -r .settings.policy\n";

/* Cuts the argument at its first "=". */
static int parse_pair(char *argument, struct setting_pair *ret_pair, struct failure *failure)
{
	char *equals = strchr(argument, '='), quoted[64];

	if (!equals) {
		text_escape(argument, strlen(argument), quoted, sizeof(quoted));
		failure_set(failure, EXIT_USAGE, EINVAL,
			    "\"%s\" is not KEY=VALUE, such as slow-start=30s", quoted);
		return -EINVAL;
	}
	*equals = '\0';
	*ret_pair = (struct setting_pair){ argument, equals + 1 };
	return 0;
}

/* Which of two values is meant nobody knows. */
static int check_twice(const struct setting_pair *pairs, size_t nr_pairs, struct failure *failure)
{
	const char *name = pairs[nr_pairs - 1].name;
	char quoted[64];
	size_t i;

	for (i = 0; i + 1 < nr_pairs; i++) {
		if (strcmp(pairs[i].name, name))
			continue;
		text_escape(name, strlen(name), quoted, sizeof(quoted));
		return failure_set(failure, EXIT_USAGE, EINVAL,
				   "\"%s\" is given twice; give each KEY once", quoted);
	}
	return 0;
}

static int set_and_print(const struct options *options, const struct setting_pair *pairs,
			 struct failure *failure)
{
	size_t nr_pairs = options->nr_arguments - 1;
	struct settings_report report;
	int err = group_set(&options->group, pairs, nr_pairs, &report, failure);

	if (err)
		return err;
	if (options->json)
		return settings_print_json(report.group, &report.after, stdout);
	if (nr_pairs)
		settings_print_change(report.group, &report.before, &report.after, stdout);
	else
		settings_print(&report.after, stdout);
	return 0;
}

int command_set(int argc, char **argv, struct failure *failure)
{
	const struct command *command = command_find("set");
	struct setting_pair pairs[MAX_SET_PAIRS];
	struct options options;
	size_t i;
	int err;

	err = options_parse(command, argc, argv, &options, failure);
	if (err)
		return err;
	if (options.help) {
		help_print_command(command, stdout);
		return 0;
	}
	for (i = 1; i < options.nr_arguments && !err; i++) {
		err = parse_pair(options.arguments[i], &pairs[i - 1], failure);
		if (!err)
			err = check_twice(pairs, i, failure);
	}
	return err ? err : set_and_print(&options, pairs, failure);
}
