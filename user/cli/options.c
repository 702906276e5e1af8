/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/options.h"

#include "base/text.h"
#include "steering/names.h"
#include "steering/netns.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <string.h>

/* Enough of what the user wrote to know it again; the rest of a long text is cut. */
#define QUOTE_SIZE 256

#define OPTION_HELP 'h'

/* All options of all commands; the values are bits of struct command.options. */
static const struct option all_options[] = {
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "all", no_argument, NULL, OPTION_ALL },
	{ "force", no_argument, NULL, OPTION_FORCE },
	{ "policy", required_argument, NULL, OPTION_POLICY },
	{ "pid", required_argument, NULL, OPTION_PID },
	{ "netns", required_argument, NULL, OPTION_NETNS },
	{ "detach-on-exit", no_argument, NULL, OPTION_DETACH_ON_EXIT },
	{ "repair", no_argument, NULL, OPTION_REPAIR },
	{ "wait", optional_argument, NULL, OPTION_WAIT },
	{ "config", required_argument, NULL, OPTION_CONFIG },
	{ "check", no_argument, NULL, OPTION_CHECK },
	{ "match", required_argument, NULL, OPTION_MATCH },
	{ "watch", optional_argument, NULL, OPTION_WATCH },
	{ "interval", required_argument, NULL, OPTION_INTERVAL },
	{ "once", no_argument, NULL, OPTION_ONCE },
	{ "width", required_argument, NULL, OPTION_WIDTH },
	{ "for", required_argument, NULL, OPTION_FOR },
	{ "metrics", required_argument, NULL, OPTION_METRICS },
	{ "help", no_argument, NULL, OPTION_HELP },
};

#define NR_OPTIONS (sizeof(all_options) / sizeof(all_options[0]))

static const char *quote(const char *text, char ret_text[QUOTE_SIZE])
{
	text_escape(text, strlen(text), ret_text, QUOTE_SIZE);
	return ret_text;
}

int options_refuse_usage(const struct command *command, const char *problem,
			 struct failure *failure)
{
	return failure_set(failure, EXIT_USAGE, EINVAL, "%s: %s; usage: socksteer %s%s%s",
			   command->name, problem, command->name, command->usage[0] ? " " : "",
			   command->usage);
}

/* The options that this command takes, as getopt wants them. */
static void select_options(const struct command *command, struct option ret_options[NR_OPTIONS + 1])
{
	size_t count = 0, i;

	for (i = 0; i < NR_OPTIONS; i++)
		if (all_options[i].val == OPTION_HELP ||
		    command->options & (unsigned int)all_options[i].val)
			ret_options[count++] = all_options[i];
	ret_options[count] = (struct option){};
}

static const char *option_name(int value)
{
	size_t i;

	for (i = 0; i < NR_OPTIONS; i++)
		if (all_options[i].val == value)
			return all_options[i].name;
	return "help";
}

/* What getopt does not take: an unknown option, an ambiguous one, or --json=yes. */
static int refuse_option(const struct command *command, char **argv, const struct option *known,
			 struct failure *failure)
{
	char letter[] = { '-', (char)optopt, '\0' }, name[QUOTE_SIZE];

	if (optopt >= OPTION_JSON)
		return failure_set(failure, EXIT_USAGE, EINVAL, "%s: --%s takes no value",
				   command->name, option_name(optopt));
	failure_set(failure, EXIT_USAGE, EINVAL, "%s: there is no option \"%s\"; it takes",
		    command->name, quote(optopt ? letter : argv[optind - 1], name));
	for (; known->name; known++)
		failure_add(failure, " --%s%s", known->name, known[1].name ? "," : "");
	return -EINVAL;
}

int options_parse_policy(const char *name, enum policy *ret_policy, struct failure *failure)
{
	char quoted[QUOTE_SIZE];
	size_t i;

	if (!policy_of_name(name, ret_policy))
		return 0;
	failure_set(failure, EXIT_USAGE, EINVAL, "there is no policy \"%s\"; there is",
		    quote(name, quoted));
	for (i = 0; i < NR_POLICIES; i++)
		failure_add(failure, "%s %s", i ? "," : "", policy_name((enum policy)i));
	return -EINVAL;
}

static int parse_pid(const char *text, struct group_spec *group, struct failure *failure)
{
	char quoted[QUOTE_SIZE];
	uint64_t pid;

	if (text_to_u64(text, 1, INT_MAX, &pid))
		return failure_set(failure, EXIT_USAGE, EINVAL,
				   "--pid takes the number of a process, not \"%s\"",
				   quote(text, quoted));
	group->pid = (uint32_t)pid;
	return 0;
}

/*
 * --wait may stand alone, so getopt leaves a timeout that is a word of its own to us. A duration is
 * never taken for a GROUP or a WORKER, nor one of those for a duration: it has a unit.
 */
static int parse_wait(char **argv, struct options *options, struct failure *failure)
{
	const char *next = argv[optind], *value = optarg;
	char quoted[QUOTE_SIZE];

	options->wait = true;
	/* No option begins with a digit, so this can only be meant for a timeout. */
	if (!value && next && next[0] == '-' && isdigit((unsigned char)next[1]))
		value = next;
	if (!value) {
		if (next && next[strspn(next, "0123456789")] &&
		    !text_to_duration(next, &options->timeout_ns))
			optind++;
		return 0;
	}
	if (!text_to_duration(value, &options->timeout_ns))
		return 0;
	return failure_set(failure, EXIT_USAGE, EINVAL,
			   "--wait takes a duration of up to a day, such as 30s, not \"%s\"",
			   quote(value, quoted));
}

/* Views are no stopwatches; more often than this only costs. */
#define MIN_INTERVAL_NS 10000000
#define DEFAULT_INTERVAL_NS 1000000000

/* A number alone is in seconds. */
static int parse_time(const char *name, const char *text, uint64_t *ret_ns, struct failure *failure)
{
	char quoted[QUOTE_SIZE];
	uint64_t ns;

	if (!text_to_u64(text, 1, UINT32_MAX, &ns))
		ns *= DEFAULT_INTERVAL_NS;
	else if (text_to_duration(text, &ns))
		ns = 0;
	if (ns < MIN_INTERVAL_NS)
		return failure_set(failure, EXIT_USAGE, EINVAL,
				   "--%s takes seconds, or a time such as 500ms or 2m, of at least "
				   "10ms, not \"%s\"",
				   name, quote(text, quoted));
	*ret_ns = ns;
	return 0;
}

static int parse_width(const char *text, uint32_t *ret_width, struct failure *failure)
{
	char quoted[QUOTE_SIZE];
	uint64_t width;

	if (text_to_u64(text, MIN_WIDTH, MAX_WIDTH, &width))
		return failure_set(failure, EXIT_USAGE, EINVAL,
				   "--width takes a number of columns, %d to %d, not \"%s\"",
				   MIN_WIDTH, MAX_WIDTH, quote(text, quoted));
	*ret_width = (uint32_t)width;
	return 0;
}

/* What only views take. */
static int parse_view_option(int option, struct options *options, struct failure *failure)
{
	switch (option) {
	case OPTION_WATCH:
		options->watch = true;
		return optarg ? parse_time("watch", optarg, &options->interval_ns, failure) : 0;
	case OPTION_INTERVAL:
		return parse_time("interval", optarg, &options->interval_ns, failure);
	case OPTION_FOR:
		return parse_time("for", optarg, &options->for_ns, failure);
	case OPTION_WIDTH:
		return parse_width(optarg, &options->width, failure);
	default:
		options->once = true;
		return 0;
	}
}

static int parse_metrics(const char *text, struct options *options, struct failure *failure)
{
	int err = loopback_parse(text, &options->metrics);
	char quoted[QUOTE_SIZE];

	options->has_metrics = !err;
	if (!err)
		return 0;
	quote(text, quoted);
	if (err == -EPERM)
		return failure_set(failure, EXIT_USAGE, EINVAL,
				   "--metrics %s: other machines could read that; only 127.0.0.1 "
				   "and [::1] are served",
				   quoted);
	return failure_set(failure, EXIT_USAGE, EINVAL,
			   "--metrics takes 127.0.0.1:PORT or [::1]:PORT, not \"%s\"", quoted);
}

static int parse_option(int option, char **argv, struct options *options, struct failure *failure)
{
	switch (option) {
	case OPTION_HELP:
		options->help = true;
		return 0;
	case OPTION_JSON:
		options->json = true;
		return 0;
	case OPTION_ALL:
		options->all = true;
		return 0;
	case OPTION_FORCE:
		options->force = true;
		return 0;
	case OPTION_REPAIR:
		options->repair = true;
		return 0;
	case OPTION_DETACH_ON_EXIT:
		options->detach_on_exit = true;
		return 0;
	case OPTION_WAIT:
		return parse_wait(argv, options, failure);
	case OPTION_CHECK:
		options->check = true;
		return 0;
	case OPTION_CONFIG:
		options->config_path = optarg;
		return 0;
	case OPTION_MATCH:
		return patterns_parse(&options->patterns, optarg, failure);
	case OPTION_METRICS:
		return parse_metrics(optarg, options, failure);
	case OPTION_POLICY:
		options->has_policy = true;
		return options_parse_policy(optarg, &options->policy, failure);
	case OPTION_PID:
		return parse_pid(optarg, &options->group, failure);
	case OPTION_NETNS:
		return netns_parse("--netns", optarg, &options->group.netns, failure);
	default:
		return parse_view_option(option, options, failure);
	}
}

int options_parse_group(const char *text, const struct options *options,
			struct group_spec *ret_group, struct failure *failure)
{
	struct group_spec group;
	char quoted[QUOTE_SIZE];

	if (group_spec_parse(text, &group))
		return failure_set(failure, EXIT_USAGE, EINVAL,
				   "\"%s\" is not a group; a group is ADDR:PORT, [V6]:PORT, :PORT "
				   "or PORT, such as 127.0.0.1:8080",
				   quote(text, quoted));
	group.pid = options->group.pid;
	group.netns = options->group.netns;
	*ret_group = group;
	return 0;
}

static int check_arguments(const struct command *command, struct options *options,
			   struct failure *failure)
{
	if (options->nr_arguments < command->min_arguments)
		return options_refuse_usage(command, "too few arguments", failure);
	if (options->nr_arguments > command->max_arguments)
		return options_refuse_usage(command, "too many arguments", failure);
	if (!command->takes_group)
		return 0;
	options->has_group = options->nr_arguments;
	if (options->has_group)
		return options_parse_group(options->arguments[0], options, &options->group,
					   failure);
	if (options->group.pid || options->group.netns)
		return options_refuse_usage(command, "--pid and --netns need a GROUP", failure);
	return 0;
}

/*
 * getopt takes any unambiguous beginning of a name, which is too little for --all. True if the option
 * that it has just read was written out, with or without "=VALUE".
 */
static bool is_written_out(char **argv, int option)
{
	const char *name = option_name(option), *word = argv[optind - 1];
	size_t length = strlen(name);

	if (option == OPTION_HELP && !strncmp(word, "-h", 2))
		return true;
	/* A value that stands apart is the last word, and the option the one before. */
	if (word == optarg)
		word = argv[optind - 2];
	return !strncmp(word, "--", 2) && !strncmp(word + 2, name, length) &&
	       (word[2 + length] == '\0' || word[2 + length] == '=');
}

int options_parse(const struct command *command, int argc, char **argv, struct options *ret_options,
		  struct failure *failure)
{
	struct option known[NR_OPTIONS + 1];
	struct options options = {
		.policy = POLICY_LEAST_LOADED,
		.timeout_ns = UINT64_MAX,
		.interval_ns = DEFAULT_INTERVAL_NS,
	};
	int option, err;

	select_options(command, known);
	opterr = 0;
	/* Zero makes glibc forget all of an earlier command line, the reordering included. */
	optind = 0;
	while ((option = getopt_long(argc, argv, ":h", known, NULL)) != -1) {
		if (option == '?')
			return refuse_option(command, argv, known, failure);
		if (option == ':')
			return failure_set(failure, EXIT_USAGE, EINVAL, "%s: --%s needs a value",
					   command->name, option_name(optopt));
		if (!is_written_out(argv, option))
			return failure_set(failure, EXIT_USAGE, EINVAL, "%s: write --%s out",
					   command->name, option_name(option));
		err = parse_option(option, argv, &options, failure);
		if (err)
			return err;
	}
	options.arguments = &argv[optind];
	options.nr_arguments = (size_t)(argc - optind);
	if (!options.help) {
		err = check_arguments(command, &options, failure);
		if (err)
			return err;
	}
	*ret_options = options;
	return 0;
}
