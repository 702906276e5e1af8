/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/names.h"

#include <errno.h>
#include <string.h>

static const struct {
	const char *name;
	const char *text;
} policies[NR_POLICIES] = {
	[POLICY_LEAST_LOADED] = { "least-loaded",
				  "fewest connections and handshakes, idle before busy (default)" },
	[POLICY_LEAST_CONN] = { "least-conn", "fewest connections" },
	[POLICY_P2C] = { "p2c", "the less loaded of two random listeners" },
	[POLICY_ROUND_ROBIN] = { "round-robin", "in turn, by weight" },
	[POLICY_HASH] = { "hash", "select nothing: the kernel's own hash" },
};

static const char *const states[NR_STATES] = {
	[STATE_UNKNOWN] = "unknown",	   [STATE_IDLE] = "idle",   [STATE_BUSY] = "busy",
	[STATE_UNATTENDED] = "unattended", [STATE_STUCK] = "stuck",
};

static const struct {
	const char *name;
	const char *text;
} outcomes[NR_OUTCOMES] = {
#define OUTCOME(NAME, name, text) [OUTCOME_##NAME] = { #name, text },
#include "socksteer/counters.def"
};

const char *policy_name(enum policy policy)
{
	return policy < NR_POLICIES ? policies[policy].name : "unknown";
}

const char *policy_text(enum policy policy)
{
	return policy < NR_POLICIES ? policies[policy].text : "";
}

int policy_of_name(const char *name, enum policy *ret_policy)
{
	size_t i;

	for (i = 0; i < NR_POLICIES; i++) {
		if (strcmp(policies[i].name, name))
			continue;
		*ret_policy = (enum policy)i;
		return 0;
	}
	return -EINVAL;
}

const char *worker_state_name(enum worker_state state)
{
	return state < NR_STATES ? states[state] : "unknown";
}

const char *outcome_name(enum outcome outcome)
{
	return outcome < NR_OUTCOMES ? outcomes[outcome].name : "unknown";
}

const char *outcome_text(enum outcome outcome)
{
	return outcome < NR_OUTCOMES ? outcomes[outcome].text : "";
}
