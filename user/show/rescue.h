/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a rescue did, for people or as JSON.
 */
#ifndef SOCKSTEER_SHOW_RESCUE_H
#define SOCKSTEER_SHOW_RESCUE_H

#include "steering/rescue.h"
#include <stdio.h>

/* Connections that were moved, over all listeners of the worker. */
uint64_t rescue_nr_moved(const struct worker_rescue *rescue);

/* To out what was done, to notes what may surprise. -EIO if the output fails. */
int rescue_print_text(const struct worker_rescue *rescue, FILE *out, FILE *notes);
/* -ENOMEM or -EIO. */
int rescue_print_json(const struct worker_rescue *rescue, FILE *out);

#endif
