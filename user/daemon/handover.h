/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Carrying new orders over to what is steered already, without a gap: settings are written where
 * they are, and only what nobody asks for any more is ended.
 */
#ifndef SOCKSTEER_DAEMON_HANDOVER_H
#define SOCKSTEER_DAEMON_HANDOVER_H

#include "base/failure.h"
#include "daemon/orders.h"
#include "kernel/tables.h"
#include "steering/scan.h"
#include "steering/pinned.h"

/*
 * Writes what was chosen for the group, place, into its settings; what was not chosen stays as
 * somebody set it. Logs each change. Called under the lock of the pins.
 */
int handover_settings(const struct orders *orders, const struct pinned_group *pinned,
		      const struct group *place, struct failure *failure);

/*
 * Ends steering of the groups that were kept and that now are not; of all that were kept if now is
 * NULL. Goes on after a failure; the first one is returned. Takes the lock of the pins.
 */
int handover_end(const struct orders *before, const struct orders *now, struct inspector *inspector,
		 const struct tables *tables, struct failure *failure);

/*
 * Reads the file anew and ends what is no longer in it. With a bad file everything stays as it is;
 * what cannot be ended is logged, and the new orders hold all the same.
 */
int handover_orders(struct orders *orders, struct inspector *inspector, const struct tables *tables,
		    struct failure *failure);

#endif
