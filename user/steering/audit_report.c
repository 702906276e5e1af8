/* SPDX-License-Identifier: GPL-2.0-only */
/* The pure part: what a report and the bounds of a difference say. */
#include "steering/audit.h"

#include <stdlib.h>

int64_t audit_certain(const struct audit_difference *difference)
{
	if (difference->low > 0)
		return difference->low;
	return difference->high < 0 ? difference->high : 0;
}

void audit_add_pass(const struct audit_pass *pass, struct audit_difference *difference)
{
	int64_t held = (int64_t)(pass->after.opened - pass->after.closed);
	int64_t over = held - (int64_t)pass->counted;
	int64_t low = over - (int64_t)(pass->after.opened - pass->before.opened) -
		      (int64_t)pass->queued_most;
	int64_t high = over + (int64_t)(pass->after.closed - pass->before.closed) +
		       (int64_t)pass->queued_most;

	if (low < difference->low)
		difference->low = low;
	if (high > difference->high)
		difference->high = high;
}

bool audit_is_clean(const struct audit_report *report)
{
	size_t i, j;

	if (report->nr_misplaced || report->nr_unrecorded)
		return false;
	for (i = 0; i < report->nr_groups; i++)
		for (j = 0; j < report->groups[i].nr_rows; j++)
			if (audit_certain(&report->groups[i].rows[j].listener) ||
			    audit_certain(&report->groups[i].rows[j].worker))
				return false;
	return true;
}

void audit_done(struct audit_report *report)
{
	size_t i;

	for (i = 0; i < report->nr_groups; i++)
		free(report->groups[i].rows);
	free(report->groups);
	*report = (struct audit_report){};
}
