/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the daemon says in its log of what it did: one line for each thing that an operator may want to
 * know, none where nothing happened.
 */
#ifndef SOCKSTEER_DAEMON_REPORTS_H
#define SOCKSTEER_DAEMON_REPORTS_H

#include "daemon/churn.h"
#include "daemon/remarks.h"
#include "steering/audit.h"
#include "steering/pinned.h"
#include "steering/refresh.h"
#include <stdint.h>

/* Of one group. oldest_join_ns: when the first of those that joined began to listen; 0 if unknown. */
void report_refresh(struct remarks *remarks, const struct pinned_group *pinned,
		    const struct refresh_report *report, uint64_t oldest_join_ns);

void report_audit(struct remarks *remarks, const struct audit_report *report);

/* That changes are looked at less often than they come. Once for each port. */
void report_churn(struct remarks *remarks, const struct churn *churn);

#endif
