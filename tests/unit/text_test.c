/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/text.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct number_case {
	const char *text;
	uint64_t min, max;
	int err;
	uint64_t expected;
};

static const struct number_case number_cases[] = {
	{ "0", 0, 10, 0, 0 },
	{ "10", 0, 10, 0, 10 },
	{ "007", 0, 10, 0, 7 },
	{ "18446744073709551615", 0, UINT64_MAX, 0, UINT64_MAX },
	{ "11", 0, 10, -ERANGE, 0 },
	{ "0", 1, 10, -ERANGE, 0 },
	{ "18446744073709551616", 0, UINT64_MAX, -ERANGE, 0 },
	{ "99999999999999999999999999", 0, UINT64_MAX, -ERANGE, 0 },
	{ "", 0, 10, -EINVAL, 0 },
	{ " 1", 0, 10, -EINVAL, 0 },
	{ "1 ", 0, 10, -EINVAL, 0 },
	{ "+1", 0, 10, -EINVAL, 0 },
	{ "-1", 0, UINT64_MAX, -EINVAL, 0 },
	{ "1x", 0, 10, -EINVAL, 0 },
	{ "0x1", 0, 10, -EINVAL, 0 },
	{ "1.5", 0, 10, -EINVAL, 0 },
	{ "one", 0, 10, -EINVAL, 0 },
	{ "11x", 0, 10, -EINVAL, 0 },
};

Test(text, a_number_is_read_whole_and_within_its_range_or_not_at_all)
{
	for (size_t i = 0; i < COUNT(number_cases); i++) {
		const struct number_case *test = &number_cases[i];
		uint64_t untouched = 4711, value = untouched;
		int err = text_to_u64(test->text, test->min, test->max, &value);

		cr_expect_eq(err, test->err, "\"%s\" gives %d", test->text, err);
		cr_expect_eq(value, err ? untouched : test->expected, "\"%s\" is %llu", test->text,
			     (unsigned long long)value);
	}
}

struct address_case {
	uint32_t family;
	uint8_t address[16];
	uint32_t port;
	const char *expected;
};

static const struct address_case address_cases[] = {
	{ AF_INET, { 127, 0, 0, 1 }, 80, "127.0.0.1:80" },
	{ AF_INET, { 0 }, 65535, "0.0.0.0:65535" },
	{ AF_INET6, { 0 }, 443, "[::]:443" },
	{ AF_INET6, { [15] = 1 }, 1, "[::1]:1" },
	{ AF_INET6, { 0x20, 0x01, 0x0d, 0xb8, [15] = 0xff }, 8080, "[2001:db8::ff]:8080" },
	{ AF_INET6, { [10] = 0xff, 0xff, 10, 0, 0, 1 }, 80, "[::ffff:10.0.0.1]:80" },
	{ AF_UNIX, { 0 }, 80, "?:80" },
};

Test(text, an_address_is_written_as_people_write_it)
{
	for (size_t i = 0; i < COUNT(address_cases); i++) {
		const struct address_case *test = &address_cases[i];
		char text[ADDRESS_TEXT_SIZE];

		text_of_address(test->family, test->address, test->port, text);
		cr_expect_str_eq(text, test->expected);
	}
}

struct escape_case {
	const char *name;
	const char *expected;
};

static const struct escape_case escape_cases[] = {
	{ "nginx", "nginx" },
	{ "", "" },
	{ "two words", "two words" },
	{ "\x1b[31m\n", "\\x1b[31m\\x0a" },
	{ "back\\slash", "back\\x5cslash" },
	{ "\xc3\xa4", "\\xc3\\xa4" },
	{ "\xff\x7f\t", "\\xff\\x7f\\x09" },
	{ "\"~\"", "\"~\"" },
};

Test(text, a_hostile_name_becomes_printable_ascii)
{
	for (size_t i = 0; i < COUNT(escape_cases); i++) {
		char text[128];

		text_escape(escape_cases[i].name, strlen(escape_cases[i].name), text, sizeof(text));
		cr_expect_str_eq(text, escape_cases[i].expected);
	}
}

Test(text, a_name_without_a_final_nul_ends_with_its_array)
{
	const char name[4] = { 'a', 'b', 'c', 'd' };
	char text[4 * sizeof(name) + 1];

	text_escape(name, sizeof(name), text, sizeof(text));
	cr_assert_str_eq(text, "abcd");
}

Test(text, a_name_ends_at_a_nul_within_its_array)
{
	const char name[8] = "ab\0cd";
	char text[4 * sizeof(name) + 1];

	text_escape(name, sizeof(name), text, sizeof(text));
	cr_assert_str_eq(text, "ab");
}

Test(text, an_escaped_name_is_cut_before_a_sequence_that_does_not_fit)
{
	static const char *const expected[] = {
		"", "a", "a", "a", "a", "a\\x0a", "a\\x0ab",
	};

	for (size_t i = 0; i < COUNT(expected); i++) {
		char text[16] = "untouched";

		text_escape("a\nb", 3, text, i + 1);
		cr_expect_str_eq(text, expected[i], "%zu bytes hold \"%s\"", i + 1, text);
	}
}
