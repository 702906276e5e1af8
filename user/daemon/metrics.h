/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The metrics endpoint of the daemon: over HTTP on a loopback address, /metrics is what "socksteer
 * metrics" prints, and /healthz says whether what is kept and exists is steered (200, else 503).
 *
 * It runs inside the daemon's event loop, after everything else that is due, and owns no thread.
 * Who asks can do little harm: few connections, each with little memory and little time, no bodies,
 * and one look at the kernel serves everybody who asks within a moment. While nobody is connected,
 * nothing wakes up.
 */
#ifndef SOCKSTEER_DAEMON_METRICS_H
#define SOCKSTEER_DAEMON_METRICS_H

#include "daemon/keeper.h"
#include <systemd/sd-event.h>

struct metrics;

/* Listens, and answers nobody yet. options is borrowed. Fails with a message. */
int metrics_new(const struct daemon_options *options, struct metrics **ret_metrics,
		struct failure *failure);
void metrics_free(struct metrics *metrics);

/* Answers from now on, as part of the loop. loop and keeper outlive the metrics. -errno. */
int metrics_serve(struct metrics *metrics, sd_event *loop, struct keeper *keeper);

#endif
