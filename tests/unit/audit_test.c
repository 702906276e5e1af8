/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/audit.h"

#include <criterion/criterion.h>

struct pass_case {
	const char *name;
	struct audit_pass passes[2];
	size_t nr_passes;
	int64_t certain;
};

#define LOADS(opened_before, closed_before, opened_after, closed_after)                            \
	.before = { .opened = (opened_before), .closed = (closed_before) },                        \
	.after = { .opened = (opened_after), .closed = (closed_after) }

static const struct pass_case cases[] = {
	{ "equal", { { LOADS(10, 4, 10, 4), .counted = 6 } }, 1, 0 },
	{ "the counter has two too many", { { LOADS(10, 2, 10, 2), .counted = 6 } }, 1, 2 },
	{ "the counter has three too few", { { LOADS(10, 7, 10, 7), .counted = 6 } }, 1, -3 },
	{ "opened behind the pass", { { LOADS(10, 4, 12, 4), .counted = 6 } }, 1, 0 },
	{ "closed after it was counted", { { LOADS(10, 4, 10, 6), .counted = 6 } }, 1, 0 },
	{ "more than was opened meanwhile", { { LOADS(10, 4, 12, 4), .counted = 5 } }, 1, 1 },
	{ "in a queue and counted again",
	  { { LOADS(10, 4, 10, 4), .counted = 7, .queued_most = 1 } },
	  1,
	  0 },
	{ "once between queue and file, then found",
	  { { LOADS(10, 4, 10, 4), .counted = 5 }, { LOADS(10, 4, 10, 4), .counted = 6 } },
	  2,
	  0 },
	{ "what two passes agree upon",
	  { { LOADS(10, 4, 10, 4), .counted = 3 }, { LOADS(10, 4, 10, 4), .counted = 4 } },
	  2,
	  2 },
};

Test(audit, only_what_all_passes_find_beyond_their_bounds_is_a_difference)
{
	size_t i, pass;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct audit_difference difference = AUDIT_UNKNOWN;

		for (pass = 0; pass < cases[i].nr_passes; pass++)
			audit_add_pass(&cases[i].passes[pass], &difference);
		cr_expect_eq(audit_certain(&difference), cases[i].certain, "%s: %ld", cases[i].name,
			     (long)audit_certain(&difference));
	}
}
