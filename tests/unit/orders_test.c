/* SPDX-License-Identifier: GPL-2.0-only */
/* Patterns, choices, and what follows from the command line and the file together. */
#include "daemon/orders.h"
#include "base/cleanup.h"
#include "steering/pattern.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct listener workers[] = {
	{ .cookie = 1, .comm = "nginx" },
	{ .cookie = 2,
	  .comm = { '\x1b', '[', '2', 'J', '\xff', '*', '\n', 'x', 'x', 'x', 'x', 'x', 'x', 'x',
		    'x', 'x' } },
};

static const struct group web = {
	.address = { 127, 0, 0, 1 },
	.family = AF_INET,
	.port = 8080,
	.netns = 7,
	.uid = 33,
	.listeners = workers,
	.nr_listeners = COUNT(workers),
};
static const struct group web6 = {
	.address = { [15] = 1 },
	.family = AF_INET6,
	.port = 8080,
	.netns = 7,
	.uid = 33,
	.listeners = workers,
	.nr_listeners = 1,
};
static const struct group gone = {
	.address = { 127, 0, 0, 1 },
	.family = AF_INET,
	.port = 8080,
	.netns = 7,
};

struct pattern_case {
	const char *text;
	bool web, web6, gone;
};

static const struct pattern_case pattern_cases[] = {
	{ "address=*", true, true, true },
	{ "address=127.0.0.1:8080", true, false, true },
	{ "address=127.0.0.1:80", false, false, false },
	{ "address=127.0.0.1:80*", true, false, true },
	{ "address=127.*:808?", true, false, true },
	{ "address=[::1]:8080", false, true, false },
	{ "address=[::1]:*", false, true, false },
	{ "address=[*", false, true, false },
	{ "address=127.0.0.1:808[0]", false, false, false },
	{ "address=127.0.0.1:\\8080", false, false, false },
	{ "command=nginx", true, true, true },
	{ "command=ngin", false, false, true },
	{ "command=ngin*", true, true, true },
	{ "command=ng[a-i]nx", true, true, true },
	{ "command=[!n]*", true, false, true },
	{ "command=*[[]2J*xx", true, false, true },
	{ "command=\x1b*", true, false, true },
	{ "command=*\xff*", true, false, true },
	{ "command=[", false, false, true },
	{ "user=33", true, true, true },
	{ "user=root", false, false, true },
	{ "user=0", false, false, true },
};

Test(pattern, a_group_matches_by_its_address_its_workers_and_its_user)
{
	for (size_t i = 0; i < COUNT(pattern_cases); i++) {
		const struct pattern_case *row = &pattern_cases[i];
		struct patterns patterns = {};
		struct failure failure = {};

		cr_assert_eq(patterns_parse(&patterns, row->text, &failure), 0, "%s: %s", row->text,
			     failure.message);
		cr_expect_eq(patterns_match(&patterns, &web), row->web, "%s", row->text);
		cr_expect_eq(patterns_match(&patterns, &web6), row->web6, "%s, IPv6", row->text);
		cr_expect_eq(patterns_match(&patterns, &gone), row->gone, "%s, gone", row->text);
	}
}

Test(pattern, all_patterns_must_match_and_none_match_everything)
{
	struct patterns patterns = {};
	struct failure failure = {};

	cr_expect(patterns_match(&patterns, &web));
	cr_assert_eq(patterns_parse(&patterns, "address=*:8080", &failure), 0);
	cr_assert_eq(patterns_parse(&patterns, "address=127.*", &failure), 0);
	cr_expect(patterns_match(&patterns, &web));
	cr_expect_not(patterns_match(&patterns, &web6));
	cr_assert_eq(patterns_parse(&patterns, "user=1", &failure), 0);
	cr_expect_not(patterns_match(&patterns, &web));
}

#define PATTERN_IS                                                                                 \
	" is no pattern; a pattern is address=GLOB, command=GLOB or user=NAME|UID, such as "       \
	"'address=*:80'"

static const char *const bad_patterns[][2] = {
	{ "", "\"\"" PATTERN_IS },
	{ "nginx", "\"nginx\"" PATTERN_IS },
	{ "=nginx", "\"=nginx\"" PATTERN_IS },
	{ "port=80", "\"port=80\"" PATTERN_IS },
	{ "addressaddressaddress=80", "\"addressaddressaddress=80\"" PATTERN_IS },
	{ "command=", "command takes a pattern of 1 to 127 characters" },
	{ "user=no such", "there is no user \"no such\"; user takes a name or a number" },
	{ "user=4294967295", "there is no user \"4294967295\"; user takes a name or a number" },
	{ "\x1b=", "\"\\x1b=\"" PATTERN_IS },
};

Test(pattern, anything_else_is_refused)
{
	for (size_t i = 0; i < COUNT(bad_patterns); i++) {
		struct patterns patterns = {};
		struct failure failure = {};

		cr_expect_eq(patterns_parse(&patterns, bad_patterns[i][0], &failure), -EINVAL);
		cr_expect_eq(failure.code, EXIT_USAGE);
		cr_expect_str_eq(failure.message, bad_patterns[i][1]);
		cr_expect_eq(patterns.nr, 0);
	}
}

Test(pattern, more_than_there_is_room_for_are_refused)
{
	struct patterns patterns = {};
	struct failure failure = {};

	for (size_t i = 0; i < MAX_PATTERNS; i++)
		cr_assert_eq(patterns_parse(&patterns, "user=1", &failure), 0);
	cr_expect_eq(patterns_parse(&patterns, "user=1", &failure), -EINVAL);
	cr_expect_str_eq(failure.message, "more than 16 patterns");
}

Test(choice, there_is_room_for_every_setting)
{
	size_t count = 0;

	while (settings_keys[count].name)
		count++;
	cr_expect_leq(count, MAX_CHOICES);
}

/* Each value that setting.h knows comes back the same: a choice keeps it as text. */
Test(choice, what_was_chosen_is_applied_and_nothing_else)
{
	struct settings settings = { .policy = POLICY_HASH,
				     .busy_penalty = 77,
				     .slow_start_ns = 5 };
	struct choice first = {}, second = {};
	struct failure failure = {};

	cr_assert_eq(choice_set(&first, "slow-start", "1500ms", &failure), 0);
	cr_assert_eq(choice_set(&second, "slow-start", "3s", &failure), 0);
	cr_assert_eq(choice_set(&second, "policy", "p2c", &failure), 0);
	cr_expect_eq(choice_set(&second, "policy", "p3c", &failure), -EINVAL);
	choice_fill(&first, &second);
	choice_apply(&first, &settings);
	cr_expect_eq(settings.slow_start_ns, 1500000000);
	cr_expect_eq(settings.policy, POLICY_P2C);
	cr_expect_eq(settings.busy_penalty, 77);
	cr_expect(choice_has(&first, "policy"));
	cr_expect_not(choice_has(&first, "busy-penalty"));
	cr_expect_not(choice_has(&first, "no-such"));
}

/* Orders of these arguments and this text; ended with orders_done(). */
static void give(const struct daemon_options *options, const char *text, struct orders *ret_orders)
{
	struct failure failure = {};

	*ret_orders = (struct orders){ .options = options };
	cr_assert_eq(config_parse("FILE", text, strlen(text), &ret_orders->config, &failure), 0,
		     "%s", failure.message);
}

struct order_case {
	const char *name;
	const char *argument; /* GROUP or NULL */
	const char *match; /* --all --match, or NULL */
	const char *policy; /* --policy or NULL */
	const char *text; /* of the file */
	bool kept, named;
	const char *chosen; /* its policy, "" for none */
};

static const struct order_case order_cases[] = {
	{ "nothing", NULL, NULL, NULL, "[defaults]\npolicy=p2c\n", false, false, "p2c" },
	{ "GROUP", ":8080", NULL, NULL, "", true, true, "" },
	{ "GROUP, the defaults", ":8080", NULL, NULL, "[defaults]\npolicy=p2c\n", true, true,
	  "p2c" },
	{ "GROUP, its section", ":8080", NULL, NULL,
	  "[group 127.0.0.1:8080]\npolicy=hash\n[defaults]\npolicy=p2c\n", true, true, "hash" },
	{ "GROUP is no business of [all]", ":8080", NULL, NULL, "[all]\npolicy=hash\n", true, true,
	  "" },
	{ "the command line wins", NULL, NULL, "least-conn", "[group :8080]\npolicy=hash\n", true,
	  true, "least-conn" },
	{ "another GROUP", ":80", NULL, NULL, "[group :81]\n", false, false, "" },
	{ "a section", NULL, NULL, NULL, "[group :8080]\n", true, true, "" },
	{ "the most precise section", NULL, NULL, NULL,
	  "[group :8080]\nnetns=7\npolicy=p2c\n[group 127.0.0.1:8080]\npolicy=hash\n"
	  "[group :8080]\npolicy=least-conn\n",
	  true, true, "hash" },
	{ "a section of another namespace", NULL, NULL, NULL, "[group :8080]\nnetns=8\n", false,
	  false, "" },
	{ "[all]", NULL, NULL, NULL, "[all]\npolicy=hash\n[defaults]\npolicy=p2c\n", true, false,
	  "hash" },
	{ "[all] of others", NULL, NULL, NULL, "[all]\ncommand=haproxy\npolicy=hash\n", false,
	  false, "" },
	{ "a section wins over [all]", NULL, NULL, NULL,
	  "[all]\npolicy=hash\n[group :8080]\nslow-start=1s\n", true, true, "" },
	{ "--all", NULL, "command=nginx", NULL, "[defaults]\npolicy=p2c\n", true, false, "p2c" },
	{ "--all of others", NULL, "command=haproxy", NULL, "", false, false, "" },
	{ "--all or [all]", NULL, "command=haproxy", NULL, "[all]\npolicy=hash\n", true, false,
	  "hash" },
	{ "--all, its section", NULL, "command=nginx", NULL, "[group :8080]\npolicy=hash\n", true,
	  true, "hash" },
};

static void expect_order(const struct order_case *row)
{
	struct group_spec spec;
	struct daemon_options options = { .specs = &spec };
	struct failure failure = {};
	struct choice choice;
	struct orders orders;

	if (row->argument)
		options.nr_specs = !group_spec_parse(row->argument, &spec);
	options.all = row->match;
	if (row->match)
		cr_assert_eq(patterns_parse(&options.patterns, row->match, &failure), 0);
	if (row->policy)
		cr_assert_eq(choice_set(&options.choice, "policy", row->policy, &failure), 0);
	give(&options, row->text, &orders);
	cr_expect_eq(orders_keep(&orders, &web), row->kept, "%s", row->name);
	cr_expect_eq(orders_name(&orders, &web), row->named, "%s", row->name);
	orders_choose(&orders, &web, &choice);
	cr_expect_str_eq(choice.values[setting_find("policy") - settings_keys], row->chosen, "%s",
			 row->name);
	orders_done(&orders);
}

Test(orders, the_command_line_wins_then_the_section_then_all_then_the_defaults)
{
	for (size_t i = 0; i < COUNT(order_cases); i++)
		expect_order(&order_cases[i]);
}

struct event_case {
	const char *text;
	bool expected;
};

static const struct event_case event_cases[] = {
	{ "", false },
	{ "[group :81]\n", false },
	{ "[group 10.0.0.1:8080]\n", true },
	{ "[group :8080]\nnetns = 7\n", true },
	{ "[group :8080]\nnetns = 8\n", false },
	{ "[all]\ncommand = nobody\n", true },
};

Test(orders, an_event_is_of_concern_if_it_can_be_about_a_kept_group)
{
	static const struct daemon_options none;
	const struct event event = { .port = 8080, .netns = 7 };

	for (size_t i = 0; i < COUNT(event_cases); i++) {
		struct orders orders;

		give(&none, event_cases[i].text, &orders);
		cr_expect_eq(orders_concern(&orders, &event), event_cases[i].expected, "%s",
			     event_cases[i].text);
		orders_done(&orders);
	}
}

Test(orders, what_was_told_is_printed_with_the_settings_that_follow)
{
	struct group_spec specs[2];
	struct daemon_options options = { .specs = specs, .nr_specs = 2, .all = true };
	char *text CLEANUP(cleanup_free) = NULL;
	struct failure failure = {};
	struct orders orders;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert_eq(group_spec_parse("127.0.0.1:80", &specs[0]), 0);
	cr_assert_eq(group_spec_parse(":81", &specs[1]), 0);
	specs[1].netns = 5;
	specs[1].pid = 6;
	cr_assert_eq(patterns_parse(&options.patterns, "command=a\x1b", &failure), 0);
	give(&options,
	     "[group 127.0.0.1:80]\npolicy=p2c\n[group :82]\nnetns=9\n[all]\naddress=127.*\n"
	     "user=root\npolicy=hash\n[defaults]\nslow-start=0\n",
	     &orders);
	orders_print(&orders, out);
	fclose(out);
	orders_done(&orders);
	cr_expect_str_eq(
		text,
		"127.0.0.1:80: policy p2c, slow-start 0, busy-penalty 0.50, stuck-after 100ms, rescue off\n"
		":81 --netns 5 --pid 6: policy least-loaded, slow-start 0, busy-penalty 0.50, stuck-after 100ms, rescue off\n"
		":82 --netns 9: policy least-loaded, slow-start 0, busy-penalty 0.50, stuck-after 100ms, rescue off\n"
		"all command=a\\x1b: policy least-loaded, slow-start 0, busy-penalty 0.50, stuck-after 100ms, rescue off\n"
		"all address=127.* user=root: policy hash, slow-start 0, busy-penalty 0.50, stuck-after 100ms, rescue off\n");
}
