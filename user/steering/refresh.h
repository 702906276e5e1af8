/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bringing a steered group up to date with what listens now. Called under the lock of the pins, with
 * an inventory that is at most moments old.
 */
#ifndef SOCKSTEER_STEERING_REFRESH_H
#define SOCKSTEER_STEERING_REFRESH_H

#include "base/failure.h"
#include "kernel/tables.h"
#include "steering/pinned.h"
#include "steering/sync.h"
#include <stdbool.h>

enum group_condition {
	CONDITION_STEERED,
	CONDITION_GONE, /* nothing listens there any more; its pins wait for it to come back */
	CONDITION_REBORN, /* it had ended and came back: attached again, now steered */
	CONDITION_UNSTEERABLE, /* a member cannot be steered, so the program was taken off */
	CONDITION_REPLACED, /* another owner's program is attached: left alone */
};

struct refresh_report {
	enum group_condition condition;
	bool incomplete; /* the scan missed members; normal while one starts, so scan again */
	struct sync_report sync;
	struct failure
		unfinished; /* a killed rescue that cannot be finished yet, if it has a message */
};

/* 0 or -errno with *failure filled. -ESTALE: it changed meanwhile, scan again. */
int group_refresh(const struct pinned_group *pinned, const struct inventory *inventory,
		  const struct tables *tables, struct refresh_report *ret_report,
		  struct failure *failure);

#endif
