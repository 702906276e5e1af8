/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of the steered groups as tables, and its JSON twin, which scripts and dashboards read:
 * its keys stay. Knows how things look; what they mean is said by steering/status.h.
 */
#ifndef SOCKSTEER_SHOW_STATUS_H
#define SOCKSTEER_SHOW_STATUS_H

#include "steering/status.h"
#include <stdio.h>

/* All: -ENOMEM, or -EIO if the output fails. */
int status_print_table(const struct status *status, FILE *out);
int status_print_json(const struct status *status, FILE *out);
int status_print_json_line(const struct status *status, FILE *out); /* for one look of many */

#endif
