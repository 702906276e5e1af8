/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * socksteer run: keeps the named groups steered while listeners join and leave, groups end and come
 * back, and other programs interfere. It holds no state of its own: whatever it knows it reads from
 * the kernel again after a restart, and steering goes on without it.
 */
#ifndef SOCKSTEER_DAEMON_DAEMON_H
#define SOCKSTEER_DAEMON_DAEMON_H

#include "base/failure.h"
#include "socksteer/types.h"
#include "steering/inventory.h"
#include <stdbool.h>
#include <stddef.h>

struct daemon_options {
	const struct group_spec *specs; /* borrowed */
	size_t nr_specs;
	enum policy policy; /* for groups that are attached by the daemon */
	bool detach_on_exit;
};

/* Runs until SIGTERM or SIGINT. 0, or -errno with *failure filled when it cannot start. */
int daemon_run(const struct daemon_options *options, struct failure *failure);

#endif
