/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/text.h"
#include "socksteer/policy.h"
#include "steering/setting.h"

#include <criterion/criterion.h>
#include <errno.h>

struct duration_case {
	const char *text;
	int err;
	uint64_t ns;
};

static const struct duration_case durations[] = {
	{ "0", 0, 0 },
	{ "0s", 0, 0 },
	{ "100ms", 0, 100000000 },
	{ "2s", 0, 2000000000 },
	{ "5m", 0, 300000000000 },
	{ "7us", 0, 7000 },
	{ "1440m", 0, 86400000000000 },
	{ "1441m", -ERANGE, 0 },
	{ "100", -EINVAL, 0 },
	{ "ms", -EINVAL, 0 },
	{ "", -EINVAL, 0 },
	{ "-1s", -EINVAL, 0 },
	{ "1.5s", -EINVAL, 0 },
	{ "1 s", -EINVAL, 0 },
	{ "99999999999999999999999999s", -EINVAL, 0 },
};

Test(setting, durations_need_a_unit_and_stay_below_a_day)
{
	size_t i;

	for (i = 0; i < sizeof(durations) / sizeof(durations[0]); i++) {
		uint64_t ns = 0;

		cr_expect_eq(text_to_duration(durations[i].text, &ns), durations[i].err, "\"%s\"",
			     durations[i].text);
		cr_expect_eq(ns, durations[i].ns, "\"%s\"", durations[i].text);
	}
}

Test(setting, a_duration_is_printed_as_it_can_be_read)
{
	static const uint64_t values[] = { 0, 1, 1500, 100000000, 90000000000, 120000000000 };
	static const char *const texts[] = { "0", "1ns", "1500ns", "100ms", "90s", "2m" };
	char text[32];
	size_t i;

	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		text_of_duration(values[i], text, sizeof(text));
		cr_expect_str_eq(text, texts[i]);
	}
}

struct setting_case {
	const char *name;
	const char *value;
	const char *printed; /* NULL: refused */
};

static const struct setting_case cases[] = {
	{ "policy", "p2c", "p2c" },	     { "policy", "fastest", NULL },
	{ "slow-start", "0", "0" },	     { "slow-start", "2500ms", "2500ms" },
	{ "slow-start", "10m", "10m" },	     { "slow-start", "11m", NULL },
	{ "slow-start", "5", NULL },	     { "busy-penalty", "0", "0.00" },
	{ "busy-penalty", "0.5", "0.50" },   { "busy-penalty", "2.25", "2.25" },
	{ "busy-penalty", "100", "100.00" }, { "busy-penalty", "101", NULL },
	{ "busy-penalty", "1.234", NULL },   { "busy-penalty", ".5", NULL },
	{ "busy-penalty", "1.", NULL },	     { "no-such", "1", NULL },
};

Test(setting, values_are_read_checked_and_printed)
{
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct setting_case *row = &cases[i];
		struct settings settings = {}, before = {};
		struct failure failure = {};
		char text[SETTING_TEXT_SIZE];
		int err = setting_apply(&settings, row->name, row->value, &failure);

		if (!row->printed) {
			cr_expect_eq(err, -EINVAL, "%s=%s", row->name, row->value);
			cr_expect_eq(failure.code, EXIT_USAGE);
			cr_expect_arr_eq(&settings, &before, sizeof(settings));
			continue;
		}
		cr_assert_eq(err, 0, "%s=%s", row->name, row->value);
		setting_find(row->name)->print(&settings, text);
		cr_expect_str_eq(text, row->printed);
	}
}
