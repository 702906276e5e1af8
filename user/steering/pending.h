/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A rescue in progress, as the listener's row of members has it. Only single fields are written, since
 * the kernel writes others of the same row meanwhile. All: 0 or -errno.
 */
#ifndef SOCKSTEER_STEERING_PENDING_H
#define SOCKSTEER_STEERING_PENDING_H

#include "kernel/group_maps.h"
#include "kernel/tables.h"
#include "kernel/values.h"
#include "socksteer/types.h"
#include "steering/inventory.h"
#include <stddef.h>

/*
 * From now on this descriptor of that process is to listen, whatever happens. Until the end its worker
 * drains: with another listener in the group it would be given what it does not accept here.
 */
int pending_begin(const struct group_maps *maps, const struct tables *tables, uint32_t slot,
		  uint32_t worker, const struct holder *holder, uint32_t backlog);
int pending_end(const struct group_maps *maps, const struct tables *tables, uint32_t slot,
		uint32_t worker);

/*
 * Gives a listener that listens again its slot and its record. What was known of its queue is forgotten
 * before: a new first connection would look like a worker that accepts.
 */
int pending_put_back(const struct group_maps *maps, const struct tables *tables, uint32_t slot,
		     const struct member *member, int fd);

#endif
