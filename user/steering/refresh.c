/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/refresh.h"
#include "base/cleanup.h"
#include "steering/program.h"
#include "steering/rescue.h"
#include "steering/roster.h"

#include <errno.h>
#include <string.h>

/* What the live group looks like before anything is done about it. */
static enum group_condition condition_of(const struct group *live)
{
	if (!live)
		return CONDITION_GONE;
	if (live->prog_type && !live->ours)
		return CONDITION_REPLACED;
	/*
	 * A group of one is steered on: its siblings may be about to start. And a listener that
	 * opened while the scan ran is counted by the kernel, and not found.
	 */
	if (live->reason == REASON_MPTCP || live->reason == REASON_NO_REUSEPORT)
		return CONDITION_UNSTEERABLE;
	return live->ours ? CONDITION_STEERED : CONDITION_REBORN;
}

/* Whoever listens gets a slot; whoever is gone loses it, also when nobody is left. */
static int sync_members(const struct pinned_group *pinned, const struct group *live,
			const struct tables *tables, struct refresh_report *report,
			struct failure *failure)
{
	static const struct group nobody;
	struct roster *roster CLEANUP(cleanup_free) = NULL;
	int err = roster_read(tables, &roster);

	if (err)
		return failure_set(failure, EXIT_FAILED, -err, "cannot read the tables: %s",
				   strerror(-err));
	return group_sync(live ? live : &nobody, &pinned->maps, roster, &report->sync, failure);
}

int group_refresh(const struct pinned_group *pinned, const struct inventory *inventory,
		  const struct tables *tables, struct refresh_report *ret_report,
		  struct failure *failure)
{
	const struct group *live = pinned_live(pinned, inventory);
	struct refresh_report report = {
		.condition = condition_of(live),
		.incomplete = live && live->reason == REASON_HIDDEN,
	};
	int err = rescue_finish_pending(&pinned->maps, tables, &report.unfinished);

	/* One that stays shut is no reason to leave the others without slots. */
	if (err == -ESTALE && report.unfinished.code == EXIT_DONE)
		return err;
	err = 0;
	switch (report.condition) {
	case CONDITION_UNSTEERABLE:
		if (live->ours)
			err = group_take_program(live, failure);
		break;
	case CONDITION_REPLACED:
		break;
	case CONDITION_GONE:
	case CONDITION_STEERED:
		err = sync_members(pinned, live, tables, &report, failure);
		break;
	case CONDITION_REBORN:
		err = sync_members(pinned, live, tables, &report, failure);
		if (!err)
			err = group_put_program(live, pinned->maps.program, failure);
		break;
	}
	if (!err)
		*ret_report = report;
	return err;
}
