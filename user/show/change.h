/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One change as one line, for people or as JSON, and flushed at once, so that whoever reads a pipe
 * sees it as it happens. Times are CLOCK_MONOTONIC and shown as time of day.
 */
#ifndef SOCKSTEER_SHOW_CHANGE_H
#define SOCKSTEER_SHOW_CHANGE_H

#include "steering/changes.h"
#include <stdio.h>

/* Both: -ENOMEM, or -EIO if the output fails. */
int change_print_text(const struct change *change, FILE *out);
int change_print_json(const struct change *change, FILE *out);

#endif
