/* SPDX-License-Identifier: GPL-2.0-only */
#include "daemon/absences.h"
#include "base/cleanup.h"

#include <criterion/criterion.h>

Test(absences, who_is_away_is_away_since_the_first_look_that_said_so)
{
	struct absences absences CLEANUP(absences_done) = {};

	absences_begin(&absences);
	cr_expect_eq(absences_note(&absences, "one", 1000), 0);
	absences_end(&absences);
	cr_expect_not(absences_reach(&absences, 1099, 100));
	cr_expect(absences_reach(&absences, 1100, 100));
	absences_begin(&absences);
	cr_expect_eq(absences_note(&absences, "two", 1050), 0);
	cr_expect_eq(absences_note(&absences, "one", 1050), 50);
	absences_end(&absences);
	cr_expect_not(absences_reach(&absences, 1099, 100));
	cr_expect(absences_reach(&absences, 1100, 100));
}

Test(absences, who_came_back_or_failed_to_end_begins_anew)
{
	struct absences absences CLEANUP(absences_done) = {};

	absences_begin(&absences);
	absences_note(&absences, "back", 1000);
	absences_note(&absences, "stays", 1010);
	absences_note(&absences, "fails", 1020);
	absences_end(&absences);
	absences_begin(&absences);
	cr_expect_eq(absences_note(&absences, "stays", 1100), 90);
	cr_expect_eq(absences_note(&absences, "fails", 1100), 80);
	absences_restart(&absences, "fails", 1100);
	absences_restart(&absences, "unknown", 1100);
	absences_end(&absences);
	absences_begin(&absences);
	cr_expect_eq(absences_note(&absences, "back", 1200), 0);
	cr_expect_eq(absences_note(&absences, "stays", 1200), 190);
	cr_expect_eq(absences_note(&absences, "fails", 1200), 100);
	absences_end(&absences);
}

Test(absences, nobody_is_away_for_any_time_in_an_empty_list)
{
	const struct absences none = {};

	cr_expect_not(absences_reach(&none, UINT64_MAX, 0));
}
