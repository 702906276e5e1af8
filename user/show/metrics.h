/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of the steered groups as Prometheus reads it: text exposition format 0.0.4.
 *
 * One family of series for each figure of status, and for each counter of counters.def under its
 * own name. The sets of labels are bounded: a listener is told by its group, network namespace and
 * slot, and who serves it stands in one info series. What other processes named is escaped twice:
 * to printable text, and as the format asks.
 */
#ifndef SOCKSTEER_SHOW_METRICS_H
#define SOCKSTEER_SHOW_METRICS_H

#include "steering/status.h"
#include <stdio.h>

/* Pure: prints what it is given. -EIO if the output fails. */
int metrics_print(const struct status *status, FILE *out);

#endif
