/* SPDX-License-Identifier: GPL-2.0-only */
#include "daemon/loopback.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	const char *text;
	struct loopback expected;
} good_cases[] = {
	{ "127.0.0.1:9000", { AF_INET, { 127, 0, 0, 1 }, 9000 } },
	{ "127.0.0.1:0", { AF_INET, { 127, 0, 0, 1 }, 0 } },
	{ "127.255.255.254:65535", { AF_INET, { 127, 255, 255, 254 }, 65535 } },
	{ "[::1]:9000", { AF_INET6, { [15] = 1 }, 9000 } },
};

Test(loopback, addresses_that_only_this_machine_can_reach_are_read)
{
	for (size_t i = 0; i < COUNT(good_cases); i++) {
		const struct loopback *expected = &good_cases[i].expected;
		struct loopback loopback;
		int err = loopback_parse(good_cases[i].text, &loopback);

		cr_assert_eq(err, 0, "%s gives %d", good_cases[i].text, err);
		cr_expect_eq(loopback.family, expected->family, "%s", good_cases[i].text);
		cr_expect_eq(loopback.port, expected->port, "%s", good_cases[i].text);
		cr_expect_arr_eq(loopback.address, expected->address, sizeof(loopback.address),
				 "%s", good_cases[i].text);
	}
}

static const struct {
	const char *text;
	int err;
} bad_cases[] = {
	{ "", -EINVAL },
	{ "9000", -EINVAL },
	{ ":9000", -EINVAL },
	{ "localhost:9000", -EINVAL },
	{ "127.0.0.1", -EINVAL },
	{ "127.0.0.1:", -EINVAL },
	{ "127.0.0.1:65536", -EINVAL },
	{ "127.0.0.1:-1", -EINVAL },
	{ "127.0.0.1:9000x", -EINVAL },
	{ "127.1:9000", -EINVAL },
	{ "::1:9000", -EINVAL },
	{ "[127.0.0.1]:9000", -EINVAL },
	{ "[::1]", -EINVAL },
	{ "0.0.0.0:9000", -EPERM },
	{ "10.0.0.1:9000", -EPERM },
	{ "126.255.255.255:9000", -EPERM },
	{ "128.0.0.1:9000", -EPERM },
	{ "[::]:9000", -EPERM },
	{ "[::2]:9000", -EPERM },
	{ "[fe80::1]:9000", -EPERM },
	{ "[::ffff:127.0.0.1]:9000", -EPERM },
};

Test(loopback, every_other_address_is_refused)
{
	struct loopback loopback, untouched;

	memset(&untouched, 0x5a, sizeof(untouched));
	memcpy(&loopback, &untouched, sizeof(loopback));
	for (size_t i = 0; i < COUNT(bad_cases); i++) {
		int err = loopback_parse(bad_cases[i].text, &loopback);

		cr_expect_eq(err, bad_cases[i].err, "\"%s\" gives %d", bad_cases[i].text, err);
	}
	cr_expect_arr_eq(&loopback, &untouched, sizeof(loopback));
}
