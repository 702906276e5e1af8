/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * socksteer run: keeps groups steered, those that were named and those that fit a pattern, while
 * listeners join and leave, groups end and come back, and other programs interfere. It holds no
 * state of its own: whatever it knows it reads from the kernel and from its file again after a
 * restart, and steering goes on without it.
 */
#ifndef SOCKSTEER_DAEMON_DAEMON_H
#define SOCKSTEER_DAEMON_DAEMON_H

#include "base/failure.h"
#include "steering/choice.h"
#include "steering/inventory.h"
#include "steering/pattern.h"
#include "steering/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct loopback;

/*
 * For so long the pins of a group that ended wait for it, where it was not named but is one of "all".
 * A restart is shorter: systemd gives a service 90 seconds to stop.
 */
#define LONGEST_ABSENCE_NS 120000000000ULL

struct daemon_options {
	const struct group_spec *specs; /* borrowed */
	size_t nr_specs;
	struct choice choice; /* settings that win over those of the file */
	bool all; /* every group that can be steered and that the patterns match */
	struct patterns patterns;
	const char *config_path; /* read at the start and on SIGHUP; NULL for none; borrowed */
	bool detach_on_exit;
	uint64_t longest_absence_ns; /* 0 for LONGEST_ABSENCE_NS */
	const struct loopback *metrics; /* where to serve them, or NULL; borrowed */
	/* What to serve there: metrics_print(), of a floor above. */
	int (*print_metrics)(const struct status *status, FILE *out);
};

/* Runs until SIGTERM or SIGINT. 0, or -errno with *failure filled when it cannot start. */
int daemon_run(const struct daemon_options *options, struct failure *failure);

#endif
