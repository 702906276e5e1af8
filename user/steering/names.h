/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The names of policies, states, outcomes and counters: the same in every view.
 */
#ifndef SOCKSTEER_STEERING_NAMES_H
#define SOCKSTEER_STEERING_NAMES_H

#include "socksteer/types.h"

const char *policy_name(enum policy policy);
const char *policy_text(enum policy policy); /* one line of help */
int policy_of_name(const char *name, enum policy *ret_policy); /* -EINVAL */

const char *worker_state_name(enum worker_state state);

const char *outcome_name(enum outcome outcome);
const char *outcome_text(enum outcome outcome);

#endif
