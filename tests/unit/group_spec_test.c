/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/inventory.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A group_spec's address: family, port, then the bytes. */
#define ADDRESS(family_, port_, ...)                                                               \
	.has_address = true, .address = { __VA_ARGS__ }, .family = (family_), .port = (port_)

static const struct group_spec good_specs[] = {
	{ .text = "80", .port = 80 },
	{ .text = ":80", .port = 80 },
	{ .text = "1", .port = 1 },
	{ .text = "65535", .port = 65535 },
	{ .text = "0080", .port = 80 },
	{ .text = "127.0.0.1:80", ADDRESS(AF_INET, 80, 127, 0, 0, 1) },
	{ .text = "0.0.0.0:8080", ADDRESS(AF_INET, 8080, 0) },
	{ .text = "255.255.255.255:65535", ADDRESS(AF_INET, 65535, 255, 255, 255, 255) },
	{ .text = "[::]:80", ADDRESS(AF_INET6, 80, 0) },
	{ .text = "[::1]:80", ADDRESS(AF_INET6, 80, [15] = 1) },
	{ .text = "[fe80::1]:443", ADDRESS(AF_INET6, 443, 0xfe, 0x80, [15] = 1) },
	{ .text = "[::ffff:10.0.0.1]:80", ADDRESS(AF_INET6, 80, [10] = 0xff, 0xff, 10, 0, 0, 1) },
};

Test(group_spec, an_address_with_a_port_or_a_port_alone_is_read)
{
	for (size_t i = 0; i < COUNT(good_specs); i++) {
		const struct group_spec *expected = &good_specs[i];
		struct group_spec spec;
		int err = group_spec_parse(expected->text, &spec);

		cr_assert_eq(err, 0, "\"%s\" gives %d", expected->text, err);
		cr_expect_eq(spec.has_address, expected->has_address, "\"%s\"", expected->text);
		cr_expect_arr_eq(spec.address, expected->address, sizeof(spec.address), "\"%s\"",
				 expected->text);
		cr_expect_eq(spec.family, expected->family, "\"%s\"", expected->text);
		cr_expect_eq(spec.port, expected->port, "\"%s\"", expected->text);
		cr_expect_eq(spec.netns, 0, "\"%s\"", expected->text);
		cr_expect_eq(spec.pid, 0, "\"%s\"", expected->text);
		cr_expect_eq(spec.text, expected->text);
	}
}

static const char *const bad_specs[] = {
	"",
	":",
	"::",
	"0",
	":0",
	"65536",
	"99999999999999999999",
	"80x",
	"x80",
	" 80",
	"80 ",
	"-1",
	"+80",
	"8 0",
	"0x50",
	"80:",
	"http",
	"1.2.3.4",
	"1.2.3.4:",
	"1.2.3.4:0",
	"1.2.3.4:65536",
	"1.2.3:80",
	"1.2.3.4.5:80",
	"1.2.3.256:80",
	" 1.2.3.4:80",
	"localhost:80",
	"*:80",
	"::1",
	"::1:80",
	"[::1]",
	"[::1]80",
	"[::1]:",
	"[::1]:0",
	"[::1:80",
	"::1]:80",
	"[]:80",
	"[:80",
	"]:80",
	"[[::1]]:80",
	"[127.0.0.1]:80",
	"[fe80::1%lo]:80",
	"[::1] :80",
	"[::1]:80:90",
};

Test(group_spec, anything_else_is_refused_and_leaves_the_output_untouched)
{
	for (size_t i = 0; i < COUNT(bad_specs); i++) {
		struct group_spec spec, untouched;
		int err;

		memset(&untouched, 0x5a, sizeof(untouched));
		memcpy(&spec, &untouched, sizeof(spec));
		err = group_spec_parse(bad_specs[i], &spec);
		cr_expect_eq(err, -EINVAL, "\"%s\" gives %d", bad_specs[i], err);
		cr_expect_arr_eq(&spec, &untouched, sizeof(spec), "\"%s\"", bad_specs[i]);
	}
}

Test(group_spec, a_very_long_text_is_refused)
{
	static const char fillers[] = { '1', ':', '[', ']', '.', 'a', ' ' };
	const size_t size = 1 << 20;
	char *text = malloc(size);
	struct group_spec spec;

	cr_assert_not_null(text);
	for (size_t i = 0; i < COUNT(fillers); i++) {
		memset(text, fillers[i], size - 1);
		text[size - 1] = '\0';
		cr_expect_eq(group_spec_parse(text, &spec), -EINVAL, "filled with %c", fillers[i]);
		/* With a good port at the end it is the address that is too long. */
		memcpy(text + size - 4, ":80", 4);
		cr_expect_eq(group_spec_parse(text, &spec), -EINVAL, "filled with %c", fillers[i]);
	}
	free(text);
}

static struct holder holders[] = { { .pid = 11, .fd = 3 }, { .pid = 12, .fd = 3 } };
static struct listener listeners[] = {
	{ .cookie = 1, .pid = 11, .holders = holders, .nr_holders = 1 },
	{ .cookie = 2, .pid = 12, .holders = holders, .nr_holders = 2 },
};
static const struct group group = {
	.address = { 127, 0, 0, 1 },
	.family = AF_INET,
	.port = 80,
	.netns = 7,
	.listeners = listeners,
	.nr_listeners = COUNT(listeners),
};

struct match_case {
	const char *name;
	struct group_spec spec;
	bool expected;
};

static const struct match_case match_cases[] = {
	{ "the port", { .port = 80 }, true },
	{ "another port", { .port = 81 }, false },
	{ "the address", { ADDRESS(AF_INET, 80, 127, 0, 0, 1) }, true },
	{ "another address", { ADDRESS(AF_INET, 80, 127, 0, 0, 2) }, false },
	{ "any address is an address too", { ADDRESS(AF_INET, 80, 0) }, false },
	{ "another family with the same bytes", { ADDRESS(AF_INET6, 80, 127, 0, 0, 1) }, false },
	{ "the namespace", { .port = 80, .netns = 7 }, true },
	{ "another namespace", { .port = 80, .netns = 8 }, false },
	{ "a worker", { .port = 80, .pid = 11 }, true },
	{ "who holds only one listener", { .port = 80, .pid = 12 }, true },
	{ "who holds none", { .port = 80, .pid = 13 }, false },
	{ "everything", { ADDRESS(AF_INET, 80, 127, 0, 0, 1), .netns = 7, .pid = 12 }, true },
	{ "all but one", { ADDRESS(AF_INET, 80, 127, 0, 0, 1), .netns = 8, .pid = 12 }, false },
};

Test(group_spec, a_group_matches_if_every_field_that_is_set_does)
{
	for (size_t i = 0; i < COUNT(match_cases); i++)
		cr_expect_eq(group_spec_matches(&match_cases[i].spec, &group),
			     match_cases[i].expected, "%s", match_cases[i].name);
}
