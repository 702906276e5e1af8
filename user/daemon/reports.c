/* SPDX-License-Identifier: GPL-2.0-only */
#include "daemon/reports.h"
#include "base/clock.h"
#include "base/log.h"
#include "steering/place.h"

#include <stdio.h>

/* With how long the first of them waited for its slot, where an event told when it began to listen. */
static void report_members(const char *name, uint64_t oldest_join_ns,
			   const struct sync_report *sync)
{
	char waited[64] = "";

	if (!sync->nr_added && !sync->nr_removed)
		return;
	if (sync->nr_added && oldest_join_ns)
		snprintf(waited, sizeof(waited), " (in a slot %.1f ms after listen)",
			 (double)(clock_now_ns() - oldest_join_ns) / 1e6);
	log_line(LOG_PRIORITY_INFO, "%s: %zu listener%s joined%s, %zu left", name, sync->nr_added,
		 sync->nr_added == 1 ? "" : "s", waited, sync->nr_removed);
}

void report_refresh(struct remarks *remarks, const struct pinned_group *pinned,
		    const struct refresh_report *report, uint64_t oldest_join_ns)
{
	char name[ADDRESS_TEXT_SIZE], text[256] = "";
	struct group group;

	group_of_settings(&pinned->settings, &group);
	group_name(&group, name);
	report_members(name, oldest_join_ns, &report->sync);
	if (report->condition == CONDITION_REBORN)
		log_line(
			LOG_PRIORITY_NOTICE,
			"%s: came back and is steered again; until now the kernel's hash served it",
			name);
	if (report->condition == CONDITION_GONE)
		snprintf(text, sizeof(text), "%s: nothing listens any more; waiting for it", name);
	if (report->condition == CONDITION_REPLACED)
		snprintf(text, sizeof(text),
			 "%s: another program was attached over ours and is left alone: "
			 "\"socksteer attach --force\" takes the group back",
			 name);
	if (report->condition == CONDITION_UNSTEERABLE)
		snprintf(text, sizeof(text),
			 "%s: has a member that cannot be steered; left to the kernel's hash",
			 name);
	remark(remarks, pinned->folder, LOG_PRIORITY_WARNING, text);
}

/* Counted, and in no process's files: descriptors on their way to another process, or lost closes. */
static bool has_unseen(const struct audit_report *report)
{
	size_t i, j;

	for (i = 0; i < report->nr_groups; i++)
		for (j = 0; j < report->groups[i].nr_rows; j++)
			if (audit_certain(&report->groups[i].rows[j].listener) > 0)
				return true;
	return false;
}

void report_audit(struct remarks *remarks, const struct audit_report *report)
{
	if (report->nr_misplaced || report->nr_unrecorded)
		log_line(
			LOG_PRIORITY_INFO,
			"audit: %lu connections charged to the worker that holds them, %lu of them to "
			"nobody before",
			(unsigned long)(report->nr_misplaced + report->nr_unrecorded),
			(unsigned long)report->nr_unrecorded);
	if (report->nr_adjusted)
		log_line(LOG_PRIORITY_WARNING,
			 "audit: counters were short of %lu connections; mended",
			 (unsigned long)report->nr_adjusted);
	remark(remarks, "unseen", LOG_PRIORITY_NOTICE,
	       has_unseen(report) ?
		       "audit: some connections are counted and in no process's files; if "
		       "\"socksteer audit\" still says so when none is being passed on, "
		       "\"socksteer audit --repair\" takes them off" :
		       "");
}

void report_churn(struct remarks *remarks, const struct churn *churn)
{
	char about[64], text[320];

	snprintf(about, sizeof(about), "changes of %u in %u", churn->port, churn->netns);
	snprintf(text, sizeof(text),
		 "listeners on port %u (netns %u) come and go all the time: until it is calm, "
		 "looks at changes take %d %% of a CPU at most, a new listener may wait up to %lu "
		 "ms for its slot, and who comes and goes is not logged; \"socksteer events\" "
		 "shows whose they are",
		 churn->port, churn->netns, CHURN_SHARE_PERMILLE / 10,
		 CHURN_DELAY_MAX_NS / 1000000UL);
	remark(remarks, about, LOG_PRIORITY_WARNING, text);
}
