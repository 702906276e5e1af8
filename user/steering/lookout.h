/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Looking at the steered groups again and again: what has to be checked and loaded is done once. A
 * group that was there and is not steered any more is an empty status and no failure, so a view
 * outlives what it shows.
 */
#ifndef SOCKSTEER_STEERING_LOOKOUT_H
#define SOCKSTEER_STEERING_LOOKOUT_H

#include "base/failure.h"
#include "steering/status.h"

struct lookout;

/* spec says which group, NULL for all of them; it is borrowed for the lookout's life. */
int lookout_new(const struct group_spec *spec, struct lookout **ret_lookout,
		struct failure *failure);
void lookout_free(struct lookout *lookout);

/* As status_read(). What was in *status is given back, unless the look fails. */
int lookout_renew(struct lookout *lookout, struct status *status, struct failure *failure);

#endif
