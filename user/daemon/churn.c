/* SPDX-License-Identifier: GPL-2.0-only */
#include "daemon/churn.h"

/* How long an allowance takes to grow by what was spent, and the other way round. */
static uint64_t time_to_earn(uint64_t spent_ns)
{
	return spent_ns * 1000 / CHURN_SHARE_PERMILLE;
}

static uint64_t earned_in(uint64_t time_ns)
{
	return time_ns * CHURN_SHARE_PERMILLE / 1000;
}

#define DEBT_MAX_NS ((int64_t)(CHURN_DELAY_MAX_NS / 1000 * CHURN_SHARE_PERMILLE))

/* What was earned since the last time. More than the whole is not kept, and never computed with. */
static void fill(struct churn *churn, uint64_t now_ns)
{
	uint64_t missing_ns = (uint64_t)(CHURN_CAPACITY_NS - churn->left_ns);
	uint64_t passed_ns = now_ns > churn->filled_ns ? now_ns - churn->filled_ns : 0;

	if (passed_ns >= time_to_earn(missing_ns)) {
		churn->left_ns = CHURN_CAPACITY_NS;
		churn->bites = false;
		churn->lead = 0;
	} else {
		churn->left_ns += (int64_t)earned_in(passed_ns);
	}
	churn->filled_ns += passed_ns;
}

void churn_init(struct churn *churn, uint64_t now_ns)
{
	*churn = (struct churn){ .left_ns = CHURN_CAPACITY_NS, .filled_ns = now_ns };
}

/* The majority vote of Boyer and Moore, which needs to remember only one candidate. */
void churn_count(struct churn *churn, const struct event *event)
{
	if (!churn->lead) {
		churn->port = event->port;
		churn->netns = event->netns;
	}
	if (churn->port == event->port && churn->netns == event->netns)
		churn->lead++;
	else
		churn->lead--;
}

void churn_spend(struct churn *churn, uint64_t now_ns, uint64_t spent_ns)
{
	fill(churn, now_ns);
	if (spent_ns > (uint64_t)(churn->left_ns + DEBT_MAX_NS))
		churn->left_ns = -DEBT_MAX_NS;
	else
		churn->left_ns -= (int64_t)spent_ns;
}

uint64_t churn_delay_ns(struct churn *churn, uint64_t now_ns)
{
	fill(churn, now_ns);
	return churn->left_ns >= 0 ? 0 : time_to_earn((uint64_t)-churn->left_ns);
}

bool churn_begins_to_bite(struct churn *churn, uint64_t now_ns)
{
	if (churn->bites || !churn_delay_ns(churn, now_ns))
		return false;
	churn->bites = true;
	return true;
}
