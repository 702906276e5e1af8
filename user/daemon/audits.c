/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/keeper_state.h"
#include "daemon/reports.h"
#include "kernel/auditor.h"
#include "steering/audit.h"

#include <errno.h>

void keeper_forget_audit(struct keeper *keeper)
{
	audit_free(keeper->audit);
	keeper->audit = NULL;
	auditor_free(keeper->auditor);
	keeper->auditor = NULL;
}

void keeper_prepare_audit(struct keeper *keeper)
{
	struct failure ignored = {};

	/* A failure comes again with the audit, which says it. */
	if (!keeper->auditor && keeper->nr_steered)
		auditor_new(&keeper->tables, &keeper->auditor, &ignored);
}

static int step(struct keeper *keeper, bool *ret_done, struct failure *failure)
{
	struct audit_report report CLEANUP(audit_done) = {};
	int err = audit_step(keeper->audit, keeper->inspector, ret_done, failure);

	if (!err && !*ret_done)
		return 0;
	if (!err) {
		audit_take_report(keeper->audit, &report);
		report_audit(&keeper->remarks, &report);
	}
	audit_free(keeper->audit);
	keeper->audit = NULL;
	return err;
}

/* From beginning to end, while everything else waits. */
static int run(struct keeper *keeper, struct failure *failure)
{
	struct audit_report report CLEANUP(audit_done) = {};
	int err = audit_run_with(keeper->inspector, keeper->auditor, NULL, REPAIR_SEEN, &report,
				 failure);

	if (!err)
		report_audit(&keeper->remarks, &report);
	return err;
}

/* After one that was disturbed nothing may come between: where listeners come and go it would never end. */
static int begin(struct keeper *keeper, bool *ret_done, struct failure *failure)
{
	bool was_disturbed = keeper->disturbed;
	int err = 0;

	keeper->disturbed = false;
	if (!keeper->auditor)
		err = auditor_new(&keeper->tables, &keeper->auditor, failure);
	if (!err && was_disturbed)
		return run(keeper, failure);
	if (!err && audit_new(keeper->auditor, REPAIR_SEEN, &keeper->audit))
		err = failure_set(failure, EXIT_FAILED, ENOMEM, "out of memory");
	return err ? err : step(keeper, ret_done, failure);
}

bool keeper_audit(struct keeper *keeper)
{
	struct failure failure = {};
	bool is_done = true;
	int err;

	if (keeper->audit) {
		err = step(keeper, &is_done, &failure);
	} else {
		keeper->changed = false;
		if (keeper->tables.layout < 0 || !keeper->nr_steered)
			return false;
		err = begin(keeper, &is_done, &failure);
	}
	if (err == -ESTALE) {
		keeper->disturbed = true;
		keeper->changed = true;
		return false;
	}
	remark(&keeper->remarks, "audit", LOG_PRIORITY_ERROR, err ? failure.message : "");
	return keeper->audit != NULL;
}

bool keeper_is_auditing(const struct keeper *keeper)
{
	return keeper->audit != NULL;
}

bool keeper_wants_audit(const struct keeper *keeper)
{
	return keeper->changed;
}
