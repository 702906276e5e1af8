/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Least privilege: what the daemon may still do once it has begun. It reads what other processes and
 * the kernel say about themselves; should that ever get the better of it, little is to be had.
 */
#ifndef SOCKSTEER_DAEMON_PRIVILEGES_H
#define SOCKSTEER_DAEMON_PRIVILEGES_H

#include "base/failure.h"

/*
 * Gives up every capability but those of rights_needed(), in all sets, and the chance to gain any by
 * executing something; logs what is kept. The bounding set can only be lowered by who has CAP_SETPCAP;
 * for others it is of no use without that chance. Threads that were started before are not concerned,
 * so there must be none. Fails with EXIT_MISSING, and nothing changed, when a needed one is missing.
 */
int privileges_drop(struct failure *failure);

/*
 * For who only looks at what the daemon would read: gives up for this process what the daemon gives up,
 * and keeps of the rest what there is. Asks neither for rights nor for anything of the kernel.
 */
int privileges_lower(struct failure *failure);

#endif
