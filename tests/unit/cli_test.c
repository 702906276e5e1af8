/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/cli.h"
#include "cli/options.h"

#include "socksteer/types.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define MAX_WORDS 10

/* Splits at spaces; a test program has no use for quotes. */
static int split(char *line, char *words[MAX_WORDS + 1])
{
	int nr_words = 0;
	char *word;

	while ((word = strsep(&line, " ")) && nr_words < MAX_WORDS)
		words[nr_words++] = word;
	words[nr_words] = NULL;
	return nr_words;
}

/* Runs a command line with standard output going to out. */
static int run_into(int out, const char *line, struct failure *failure)
{
	char copy[512], *words[MAX_WORDS + 1];
	int saved = dup(STDOUT_FILENO), nr_words, err;

	cr_assert_lt(strlen(line), sizeof(copy));
	memcpy(copy, line, strlen(line) + 1);
	nr_words = split(copy, words);
	cr_assert_geq(saved, 0);
	fflush(stdout);
	cr_assert_geq(dup2(out, STDOUT_FILENO), 0);
	*failure = (struct failure){};
	err = cli_run(nr_words, words, failure);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	return err;
}

/* What a command line that succeeds prints. */
static void run_well(const char *line, char *ret_output, size_t size)
{
	int out = memfd_create("output", MFD_CLOEXEC), err;
	struct failure failure;
	ssize_t length;

	cr_assert_geq(out, 0);
	err = run_into(out, line, &failure);
	cr_assert_eq(err, 0, "%s: %d, %s", line, err, failure.message);
	cr_expect_eq(failure.code, EXIT_DONE);
	length = pread(out, ret_output, size - 1, 0);
	cr_assert_geq(length, 0);
	ret_output[length] = '\0';
	close(out);
}

Test(cli, help_lists_every_command)
{
	char output[8192];

	run_well("socksteer help", output, sizeof(output));
	cr_assert_str_eq(
		output,
		"Usage: socksteer COMMAND [ARGUMENT]...\n"
		"\n"
		"Several workers listen on one TCP port with SO_REUSEPORT: socksteer makes the kernel\n"
		"hand each new connection to the worker that has least to do.\n"
		"\n"
		"Commands:\n"
		"  list     show what listens on this machine, and what can be steered\n"
		"  attach   begin to steer new connections of a group\n"
		"  detach   end it, and leave the group to the kernel's hash\n"
		"  status   show the load and the share of each listener of the steered groups\n"
		"  top      watch the load of all listeners on a terminal\n"
		"  events   show what happens, as it happens\n"
		"  metrics  print the same figures once, as Prometheus reads them\n"
		"  policy   switch the policy of a steered group\n"
		"  set      show or change the settings of a steered group\n"
		"  drain    give a worker no new connections, and let it finish those it holds\n"
		"  resume   give a draining worker connections again\n"
		"  weight   set the share of a worker relative to the others\n"
		"  rescue   move what waits for a worker that hangs to other workers\n"
		"  audit    compare the counters with the kernel's sockets\n"
		"  run      keep groups steered while listeners come and go\n"
		"  version  print the version\n"
		"  help     explain a command\n"
		"\n"
		"\"socksteer help COMMAND\" explains one.\n"
		"\n"
		"Exit codes:\n"
		"  0  done\n"
		"  1  failed\n"
		"  2  usage\n"
		"  3  the kernel lacks something, or a right is missing\n"
		"  4  nothing to steer\n"
		"\n"
		"Example:\n"
		"  socksteer list\n"
		"  socksteer attach :8080\n"
		"  socksteer status\n");
}

Test(cli, the_help_of_attach_teaches_it)
{
	char output[8192];

	run_well("socksteer help attach", output, sizeof(output));
	cr_assert_str_eq(
		output,
		"Usage: socksteer attach GROUP [--policy NAME] [--pid PID] [--netns INODE|PATH] [--force]\n"
		"\n"
		"Hands each new connection of the group to the listener with the least load. The\n"
		"servers are not touched and need not know. Connections that are open already stay\n"
		"where they are, and count. Either the whole group is steered or nothing changes.\n"
		"Steering goes on after this command has ended; \"socksteer detach\" ends it.\n"
		"\n"
		"A GROUP that fits several is refused with the list of them; --pid and --netns tell\n"
		"them apart.\n"
		"\n"
		"GROUP is ADDR:PORT, [V6]:PORT, :PORT or PORT.\n"
		"\n"
		"Options:\n"
		"      --policy NAME   how to choose, from the list below (default least-loaded)\n"
		"      --force         replace a program that somebody else has attached\n"
		"      --pid PID       the group of which this process holds a listener\n"
		"      --netns INODE|PATH\n"
		"                      the group in this network namespace: its inode number,\n"
		"                      or a file such as /run/netns/NAME or /proc/PID/ns/net\n"
		"  -h, --help          show this text\n"
		"\n"
		"Policies:\n"
		"  least-loaded  fewest connections and handshakes, idle before busy (default)\n"
		"  least-conn    fewest connections\n"
		"  p2c           the less loaded of two random listeners\n"
		"  round-robin   in turn, by weight\n"
		"  hash          select nothing: the kernel's own hash\n"
		"\n"
		"Exit codes: 0 steered, or steered already; 1 failed, and the group is as it was;\n"
		"2 usage; 3 a right or something of the kernel is missing; 4 nothing to steer: no\n"
		"such group, one listener only, no SO_REUSEPORT, or MPTCP.\n"
		"\n"
		"Examples:\n"
		"  socksteer attach :8080\n"
		"  socksteer attach 127.0.0.1:80 --policy least-conn --netns /run/netns/blue\n");
}

struct option_case {
	unsigned int option;
	const char *name;
};

static const struct option_case option_cases[] = {
	{ OPTION_JSON, "--json" },
	{ OPTION_ALL, "--all" },
	{ OPTION_FORCE, "--force" },
	{ OPTION_POLICY, "--policy" },
	{ OPTION_PID, "--pid" },
	{ OPTION_NETNS, "--netns" },
	{ OPTION_CONFIG, "--config" },
	{ OPTION_CHECK, "--check" },
	{ OPTION_WAIT, "--wait" },
	{ OPTION_MATCH, "--match" },
	{ OPTION_DETACH_ON_EXIT, "--detach-on-exit" },
	{ OPTION_METRICS, "--metrics" },
};

static void expect_help(const struct command *command, const char *help)
{
	char usage[256], example[64];
	const char *text;

	snprintf(usage, sizeof(usage), "Usage: socksteer %s", command->name);
	snprintf(example, sizeof(example), "\n  socksteer %s", command->name);
	cr_expect_eq(strncmp(help, usage, strlen(usage)), 0, "%s", help);
	cr_expect_not_null(strstr(help, example), "%s has no example", command->name);
	text = strstr(help, "\nOptions:\n");
	cr_assert_not_null(text, "%s", command->name);
	cr_expect_not_null(strstr(text, "-h, --help "), "%s", command->name);
	for (size_t i = 0; i < COUNT(option_cases); i++)
		cr_expect_eq(strstr(text, option_cases[i].name) != NULL,
			     (command->options & option_cases[i].option) != 0, "%s and %s",
			     command->name, option_cases[i].name);
}

Test(cli, the_help_of_every_command_names_exactly_its_options)
{
	char line[64], output[8192];

	for (const struct command *command = commands; command->name; command++) {
		snprintf(line, sizeof(line), "socksteer help %s", command->name);
		run_well(line, output, sizeof(output));
		expect_help(command, output);
	}
}

Test(cli, every_way_to_ask_for_help_gives_the_same_text)
{
	static const char *const forms[] = { "socksteer %s --help", "socksteer %s -h",
					     "socksteer --help %s", "socksteer -h %s" };
	char line[64], expected[8192], output[8192];

	for (const struct command *command = commands; command->name; command++) {
		snprintf(line, sizeof(line), "socksteer help %s", command->name);
		run_well(line, expected, sizeof(expected));
		for (size_t i = 0; i < COUNT(forms); i++) {
			const char *middle = strstr(forms[i], "%s");

			snprintf(line, sizeof(line), "%.*s%s%s", (int)(middle - forms[i]), forms[i],
				 command->name, middle + 2);
			run_well(line, output, sizeof(output));
			cr_expect_str_eq(output, expected, "%s", line);
		}
	}
}

Test(cli, help_comes_before_what_is_missing)
{
	char output[8192];

	run_well("socksteer policy 80x --help", output, sizeof(output));
	cr_assert_eq(strncmp(output, "Usage: socksteer policy", 23), 0);
}

Test(cli, version_prints_the_version_and_the_layout)
{
	char output[256], expected[256];

	snprintf(expected, sizeof(expected), "socksteer %s (layout %d)\n", SOCKSTEER_VERSION,
		 LAYOUT_VERSION);
	run_well("socksteer version", output, sizeof(output));
	cr_expect_str_eq(output, expected);
	run_well("socksteer --version", output, sizeof(output));
	cr_expect_str_eq(output, expected);
}

struct bad_case {
	const char *line;
	const char *message;
};

#define ATTACH_USAGE                                                                               \
	"; usage: socksteer attach GROUP [--policy NAME] [--pid PID] [--netns INODE|PATH] "        \
	"[--force]"
#define DETACH_USAGE "; usage: socksteer detach GROUP [--pid PID] [--netns INODE|PATH] | --all"
#define POLICY_USAGE "; usage: socksteer policy GROUP NAME [--pid PID] [--netns INODE|PATH]"
#define STATUS_USAGE                                                                               \
	"; usage: socksteer status [GROUP] [--pid PID] [--netns INODE|PATH] [--json] [--watch[=SECONDS]]"
#define TOP_USAGE                                                                                  \
	"; usage: socksteer top [GROUP] [--pid PID] [--netns INODE|PATH] [--interval TIME] "       \
	"[--once [--width COLUMNS]]"
#define TIME_IS(option, value)                                                                     \
	"--" option                                                                                \
	" takes seconds, or a time such as 500ms or 2m, of at least 10ms, not \"" value "\""
#define RUN_USAGE                                                                                  \
	"; usage: socksteer run [GROUP...] [--config FILE] [--check] [--all [--match "             \
	"KEY=GLOB]...] [--policy NAME] [--pid PID] [--netns INODE|PATH] [--detach-on-exit] "       \
	"[--metrics ADDR:PORT]"
#define NO_GROUP                                                                                   \
	" is not a group; a group is ADDR:PORT, [V6]:PORT, :PORT or PORT, such as 127.0.0.1:8080"
#define POLICIES "; there is least-loaded, least-conn, p2c, round-robin, hash"
#define NETNS_IS "; it takes an inode number, or a path such as /run/netns/NAME or /proc/PID/ns/net"
#define ATTACH_IS "; it takes --force, --policy, --pid, --netns, --help"

#define DRAIN_USAGE                                                                                \
	"; usage: socksteer drain GROUP WORKER [--wait [TIMEOUT]] [--pid PID] "                    \
	"[--netns INODE|PATH]"
#define WEIGHT_USAGE                                                                               \
	"; usage: socksteer weight GROUP WORKER WEIGHT [--pid PID] [--netns INODE|PATH]"
#define RESCUE_USAGE                                                                               \
	"; usage: socksteer rescue GROUP WORKER [--json] [--pid PID] [--netns INODE|PATH]"

#define NO_WORKER                                                                                  \
	" is not a worker; a worker is a slot, a pid or COMMAND:PID, such as 0, 4211 or "          \
	"nginx:4211"
#define NO_WEIGHT " is not a weight; a weight is a whole number from 1 to 1000"
#define NO_DURATION " takes a duration of up to a day, such as 30s, not "

static const struct bad_case bad_cases[] = {
	{ "socksteer", "a command is missing; \"socksteer help\" lists them" },
	{ "socksteer frob", "there is no command \"frob\"; \"socksteer help\" lists them" },
	{ "socksteer \x1b[2J", "there is no command \"\\x1b[2J\"; \"socksteer help\" lists them" },
	{ "socksteer --json", "there is no command \"--json\"; \"socksteer help\" lists them" },
	{ "socksteer help frob", "there is no command \"frob\"; \"socksteer help\" lists them" },
	{ "socksteer help list attach",
	  "help: too many arguments; usage: socksteer help [COMMAND]" },
	{ "socksteer version now", "version: too many arguments; usage: socksteer version" },
	{ "socksteer version --json", "version: there is no option \"--json\"; it takes --help" },
	{ "socksteer list 80", "list: too many arguments; usage: socksteer list [--json]" },
	{ "socksteer list --force",
	  "list: there is no option \"--force\"; it takes --json, --help" },
	{ "socksteer list -x", "list: there is no option \"-x\"; it takes --json, --help" },
	{ "socksteer list --json=yes", "list: --json takes no value" },
	{ "socksteer attach", "attach: too few arguments" ATTACH_USAGE },
	{ "socksteer attach --force", "attach: too few arguments" ATTACH_USAGE },
	{ "socksteer attach 80 81", "attach: too many arguments" ATTACH_USAGE },
	{ "socksteer attach 80 -- --force", "attach: too many arguments" ATTACH_USAGE },
	{ "socksteer attach localhost:80", "\"localhost:80\"" NO_GROUP },
	{ "socksteer attach 0", "\"0\"" NO_GROUP },
	{ "socksteer attach ::1:80", "\"::1:80\"" NO_GROUP },
	{ "socksteer attach 80 --policy fair", "there is no policy \"fair\"" POLICIES },
	{ "socksteer attach 80 --policy", "attach: --policy needs a value" },
	{ "socksteer attach 80 --pid", "attach: --pid needs a value" },
	{ "socksteer attach 80 --pid nginx", "--pid takes the number of a process, not \"nginx\"" },
	{ "socksteer attach 80 --pid 0", "--pid takes the number of a process, not \"0\"" },
	{ "socksteer attach 80 --pid -1", "--pid takes the number of a process, not \"-1\"" },
	{ "socksteer attach 80 --pid 2147483648",
	  "--pid takes the number of a process, not \"2147483648\"" },
	{ "socksteer attach 80 --p 1", "attach: there is no option \"--p\"" ATTACH_IS },
	{ "socksteer detach --al", "detach: write --all out" },
	{ "socksteer attach 80 --all", "attach: there is no option \"--all\"" ATTACH_IS },
	{ "socksteer attach 80 --netns 0", "--netns 0: an inode number is 1 to 4294967295" },
	{ "socksteer attach 80 --netns 4294967296",
	  "--netns 4294967296: an inode number is 1 to 4294967295" },
	{ "socksteer attach 80 --netns /no/such/file",
	  "--netns \"/no/such/file\": No such file or directory" NETNS_IS },
	{ "socksteer attach 80 --netns blue",
	  "--netns \"blue\": No such file or directory" NETNS_IS },
	{ "socksteer attach 80 --netns /", "--netns \"/\" is not a network namespace" NETNS_IS },
	{ "socksteer attach 80 --netns /dev/null",
	  "--netns \"/dev/null\" is not a network namespace" NETNS_IS },
	{ "socksteer attach 80 --netns /proc/self/ns/mnt",
	  "--netns \"/proc/self/ns/mnt\" is not a network namespace" NETNS_IS },
	{ "socksteer detach", "detach: GROUP or --all is missing" DETACH_USAGE },
	{ "socksteer detach --all 80", "detach: GROUP and --all exclude each other" DETACH_USAGE },
	{ "socksteer detach --all --pid 1", "detach: --pid and --netns need a GROUP" DETACH_USAGE },
	{ "socksteer detach 80x", "\"80x\"" NO_GROUP },
	{ "socksteer status --netns 5", "status: --pid and --netns need a GROUP" STATUS_USAGE },
	{ "socksteer status --watch=0", TIME_IS("watch", "0") },
	{ "socksteer status --watch=-1", TIME_IS("watch", "-1") },
	{ "socksteer status --watch=1h", TIME_IS("watch", "1h") },
	{ "socksteer events --for 9ms", TIME_IS("for", "9ms") },
	{ "socksteer events --for", "events: --for needs a value" },
	{ "socksteer events 80",
	  "events: too many arguments; usage: socksteer events [--json] [--for DURATION]" },
	{ "socksteer top --interval x", TIME_IS("interval", "x") },
	{ "socksteer top --once --width 19",
	  "--width takes a number of columns, 20 to 1000, not \"19\"" },
	{ "socksteer top --width 80", "top: --width is for --once" TOP_USAGE },
	{ "socksteer status 1.2.3.4", "\"1.2.3.4\"" NO_GROUP },
	{ "socksteer metrics 80", "metrics: too many arguments; usage: socksteer metrics" },
	{ "socksteer run 80 --metrics", "run: --metrics needs a value" },
	{ "socksteer run 80 --metrics 9000",
	  "--metrics takes 127.0.0.1:PORT or [::1]:PORT, not \"9000\"" },
	{ "socksteer run 80 --metrics 0.0.0.0:9000",
	  "--metrics 0.0.0.0:9000: other machines could read that; only 127.0.0.1 and [::1] are "
	  "served" },
	{ "socksteer policy", "policy: too few arguments" POLICY_USAGE },
	{ "socksteer policy 80", "policy: too few arguments" POLICY_USAGE },
	{ "socksteer policy 80 p2c hash", "policy: too many arguments" POLICY_USAGE },
	{ "socksteer policy 80 p2", "there is no policy \"p2\"" POLICIES },
	{ "socksteer policy p2c 80", "\"p2c\"" NO_GROUP },
	{ "socksteer drain 80", "drain: too few arguments" DRAIN_USAGE },
	{ "socksteer drain 80 1 30s", "drain: too many arguments" DRAIN_USAGE },
	{ "socksteer drain 80 nginx", "\"nginx\"" NO_WORKER },
	{ "socksteer drain 80 -- -1", "\"-1\"" NO_WORKER },
	{ "socksteer drain 80 :5", "\":5\"" NO_WORKER },
	{ "socksteer drain 80 \x1b:", "\"\\x1b:\"" NO_WORKER },
	{ "socksteer drain 80 1 --wait=30", "--wait" NO_DURATION "\"30\"" },
	{ "socksteer drain 80 1 --wait=", "--wait" NO_DURATION "\"\"" },
	{ "socksteer drain 80 1 --wait -1s", "--wait" NO_DURATION "\"-1s\"" },
	{ "socksteer drain --wait -1 80 1", "--wait" NO_DURATION "\"-1\"" },
	{ "socksteer drain 80 1 --wait=-1s", "--wait" NO_DURATION "\"-1s\"" },
	{ "socksteer drain 80 1 --wait=1441m", "--wait" NO_DURATION "\"1441m\"" },
	{ "socksteer drain 80 --wait 30s", "drain: too few arguments" DRAIN_USAGE },
	{ "socksteer resume 80 1 --wait",
	  "resume: there is no option \"--wait\"; it takes --pid, --netns, --help" },
	{ "socksteer resume 80 slot:x", "\"slot:x\"" NO_WORKER },
	{ "socksteer rescue 80", "rescue: too few arguments" RESCUE_USAGE },
	{ "socksteer rescue 80 nginx", "\"nginx\"" NO_WORKER },
	{ "socksteer weight 80 1", "weight: too few arguments" WEIGHT_USAGE },
	{ "socksteer weight 80 1 0", "\"0\"" NO_WEIGHT },
	{ "socksteer weight 80 1 1001", "\"1001\"" NO_WEIGHT },
	{ "socksteer weight 80 1 1.5", "\"1.5\"" NO_WEIGHT },
	{ "socksteer weight 80 x 5", "\"x\"" NO_WORKER },
	{ "socksteer set 80 policy", "\"policy\" is not KEY=VALUE, such as slow-start=30s" },
	{ "socksteer set 80 policy=p2c speed=9",
	  "there is no setting \"speed\"; there are policy, slow-start, busy-penalty, stuck-after, rescue" },
	{ "socksteer set 80 policy=p2c slow-start=30",
	  "\"30\" is no value for slow-start (DURATION): a listener that joins reaches its full share "
	  "after this: 0 to 10m" },
	{ "socksteer set 80 policy=p2c policy=hash",
	  "\"policy\" is given twice; give each KEY once" },
	{ "socksteer set 80 policy=p2c slow-start=1s policy=p2c",
	  "\"policy\" is given twice; give each KEY once" },
	{ "socksteer run", "run: GROUP, --all or --config is missing" RUN_USAGE },
	{ "socksteer run --check", "run: GROUP, --all or --config is missing" RUN_USAGE },
	{ "socksteer run 80 --match user=0", "run: --match needs --all" RUN_USAGE },
	{ "socksteer run --all --netns 5", "run: --pid and --netns need a GROUP" RUN_USAGE },
	{ "socksteer run --all --match nginx",
	  "\"nginx\" is no pattern; a pattern is address=GLOB, command=GLOB or user=NAME|UID, such "
	  "as 'address=*:80'" },
};

Test(cli, a_usage_error_is_one_sentence_and_exit_code_2)
{
	struct failure failure;

	for (size_t i = 0; i < COUNT(bad_cases); i++) {
		int err = run_into(STDOUT_FILENO, bad_cases[i].line, &failure);

		cr_expect_eq(err, -EINVAL, "%s: %d", bad_cases[i].line, err);
		cr_expect_eq(failure.code, EXIT_USAGE, "%s: %d", bad_cases[i].line, failure.code);
		cr_expect_str_eq(failure.message, bad_cases[i].message);
	}
}

Test(cli, a_very_long_argument_is_cut_in_the_message)
{
	char text[3000], *words[] = { text, text, text, NULL };
	struct failure failure = {};

	memset(text, '\x1b', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	cr_expect_eq(cli_run(2, words, &failure), -EINVAL);
	cr_expect_lt(strlen(failure.message), 300);
	words[1] = (char[]){ "attach" };
	cr_expect_eq(cli_run(3, words, &failure), -EINVAL);
	cr_expect_eq(failure.code, EXIT_USAGE);
	cr_expect_lt(strlen(failure.message), 500);
}

/* The options of the command; they borrow from the copy of the line. */
static void parse_well(const char *name, const char *line, struct options *ret_options)
{
	static char copy[256], *words[MAX_WORDS + 1];
	struct failure failure = {};
	int nr_words, err;

	cr_assert_lt(strlen(line), sizeof(copy));
	memcpy(copy, line, strlen(line) + 1);
	nr_words = split(copy, words);
	err = options_parse(command_find(name), nr_words, words, ret_options, &failure);
	cr_assert_eq(err, 0, "%s: %s", line, failure.message);
}

Test(options, options_may_stand_anywhere_and_in_any_form)
{
	static const char *const lines[] = {
		"attach 127.0.0.1:80 --policy p2c --pid 7 --netns 5 --force",
		"attach --policy p2c 127.0.0.1:80 --pid 7 --netns 5 --force",
		"attach --force --netns=5 --pid=7 --policy=p2c 127.0.0.1:80",
		"attach --force --netns 5 --pid 7 --policy p2c -- 127.0.0.1:80",
	};
	const uint8_t loopback[16] = { 127, 0, 0, 1 };

	for (size_t i = 0; i < COUNT(lines); i++) {
		struct options options;

		parse_well("attach", lines[i], &options);
		cr_expect(options.force && options.has_group && !options.help, "%s", lines[i]);
		cr_expect_eq(options.policy, POLICY_P2C, "%s", lines[i]);
		cr_expect_eq(options.group.pid, 7, "%s", lines[i]);
		cr_expect_eq(options.group.netns, 5, "%s", lines[i]);
		cr_expect_eq(options.group.port, 80, "%s", lines[i]);
		cr_expect_eq(options.group.family, AF_INET, "%s", lines[i]);
		cr_expect_arr_eq(options.group.address, loopback, 16, "%s", lines[i]);
		cr_expect_str_eq(options.group.text, "127.0.0.1:80");
	}
}

Test(options, without_options_everything_has_its_default)
{
	struct options options;

	parse_well("attach", "attach :80", &options);
	cr_expect(!options.help && !options.json && !options.all && !options.force);
	cr_expect_eq(options.policy, POLICY_LEAST_LOADED);
	cr_expect_eq(options.group.pid, 0);
	cr_expect_eq(options.group.netns, 0);
	cr_expect_not(options.group.has_address);
	parse_well("status", "status", &options);
	cr_expect(!options.has_group && !options.json);
	cr_expect_eq(options.nr_arguments, 0);
}

struct wait_case {
	const char *line;
	bool wait;
	uint64_t timeout_ns;
};

static const struct wait_case wait_cases[] = {
	{ "drain :80 4211", false, UINT64_MAX },
	{ "drain :80 4211 --wait", true, UINT64_MAX },
	{ "drain :80 4211 --wait 30s", true, 30000000000 },
	{ "drain :80 4211 --wait=30s", true, 30000000000 },
	{ "drain --wait 30s :80 4211", true, 30000000000 },
	{ "drain :80 --wait 100ms 4211", true, 100000000 },
	{ "drain --wait :80 4211", true, UINT64_MAX },
	{ "drain :80 --wait 4211", true, UINT64_MAX },
	{ "drain --netns 5 --wait 2m --pid 7 -- :80 4211", true, 120000000000 },
	{ "drain :80 4211 --wait=0", true, 0 },
};

Test(options, a_timeout_is_told_from_a_group_and_a_worker_by_its_unit)
{
	for (size_t i = 0; i < COUNT(wait_cases); i++) {
		struct options options;

		parse_well("drain", wait_cases[i].line, &options);
		cr_expect_eq(options.wait, wait_cases[i].wait, "%s", wait_cases[i].line);
		cr_expect_eq(options.timeout_ns, wait_cases[i].timeout_ns, "%s",
			     wait_cases[i].line);
		cr_expect_eq(options.group.port, 80, "%s", wait_cases[i].line);
		cr_assert_eq(options.nr_arguments, 2, "%s", wait_cases[i].line);
		cr_expect_str_eq(options.arguments[1], "4211", "%s", wait_cases[i].line);
	}
}

struct time_case {
	const char *name;
	const char *line;
	uint64_t interval_ns;
	uint64_t for_ns;
};

static const struct time_case time_cases[] = {
	{ "status", "status --watch", 1000000000, 0 },
	{ "status", "status --watch 80", 1000000000, 0 },
	{ "status", "status --watch=5", 5000000000, 0 },
	{ "status", "status --watch=500ms", 500000000, 0 },
	{ "top", "top --interval 2m", 120000000000, 0 },
	{ "top", "top --interval=10ms", 10000000, 0 },
	{ "events", "events --for 10", 1000000000, 10000000000 },
};

Test(options, times_are_seconds_or_have_a_unit)
{
	for (size_t i = 0; i < COUNT(time_cases); i++) {
		const struct time_case *expected = &time_cases[i];
		struct options options;

		parse_well(expected->name, expected->line, &options);
		cr_expect_eq(options.interval_ns, expected->interval_ns, "%s", expected->line);
		cr_expect_eq(options.for_ns, expected->for_ns, "%s", expected->line);
		cr_expect_eq(options.watch, strstr(expected->line, "--watch") != NULL);
	}
}

Test(options, a_network_namespace_may_be_named_by_its_file)
{
	struct options options;
	struct stat own;

	cr_assert_eq(stat("/proc/self/ns/net", &own), 0);
	parse_well("status", "status 80 --netns /proc/self/ns/net", &options);
	cr_expect_eq(options.group.netns, own.st_ino);
}

Test(options, a_refused_command_line_leaves_the_options_untouched)
{
	char name[] = "attach", group[] = "80x", *words[] = { name, group, NULL };
	struct options options, untouched;
	struct failure failure = {};

	memset(&untouched, 0x5a, sizeof(untouched));
	memcpy(&options, &untouched, sizeof(options));
	cr_expect_eq(options_parse(command_find("attach"), 2, words, &options, &failure), -EINVAL);
	cr_expect_eq(failure.code, EXIT_USAGE);
	cr_expect_arr_eq(&options, &untouched, sizeof(options));
}

Test(cli, output_that_cannot_be_written_is_exit_code_1)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct failure failure;

	cr_assert_geq(full, 0);
	cr_expect_eq(run_into(full, "socksteer help", &failure), -ENOSPC);
	cr_expect_eq(failure.code, EXIT_FAILED);
	cr_expect_str_eq(failure.message,
			 "cannot write to standard output: No space left on device");
	close(full);
}

Test(cli, a_reader_that_has_gone_is_exit_code_141_and_no_message)
{
	struct failure failure;
	int ends[2];

	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
	close(ends[0]);
	cr_expect_eq(run_into(ends[1], "socksteer help", &failure), -EPIPE);
	cr_expect_eq(failure.code, EXIT_UNREAD);
	cr_expect_str_empty(failure.message);
	close(ends[1]);
}

struct report_case {
	struct attach_report report;
	const char *output;
	const char *notes;
};

static const struct report_case report_cases[] = {
	{ { "127.0.0.1:8080", false, 0, 8, 8, 12, "" },
	  "127.0.0.1:8080: steering 8 listeners of 8 workers by least-loaded; "
	  "12 connections were already open\n",
	  "" },
	{ { "[::1]:80", false, 0, 2, 1, 1, "queued, idle" },
	  "[::1]:80: steering 2 listeners of 1 worker by least-loaded; "
	  "1 connection was already open\n",
	  "socksteer: steering without what this kernel does not show: queued, idle\n" },
	{ { "[::1]:80", true, 0, 2, 2, 0, "" },
	  "[::1]:80 is steered already; nothing changed\n",
	  "" },
	{ { "[::1]:80", true, 1, 3, 3, 0, "" },
	  "[::1]:80 is steered already; 1 listener that joined since was added\n",
	  "" },
};

Test(cli, an_attach_says_what_it_did_in_one_line)
{
	for (size_t i = 0; i < COUNT(report_cases); i++) {
		char output[256] = "", notes[256] = "";
		FILE *out = fmemopen(output, sizeof(output), "w");
		FILE *other = fmemopen(notes, sizeof(notes), "w");

		cr_assert(out && other);
		attach_report_print(&report_cases[i].report, POLICY_LEAST_LOADED, out, other);
		fclose(out);
		fclose(other);
		cr_expect_str_eq(output, report_cases[i].output);
		cr_expect_str_eq(notes, report_cases[i].notes);
	}
}
