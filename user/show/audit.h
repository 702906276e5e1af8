/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What an audit found, for people and as JSON.
 */
#ifndef SOCKSTEER_SHOW_AUDIT_H
#define SOCKSTEER_SHOW_AUDIT_H

#include "steering/audit.h"
#include <stdio.h>

/* Both: -ENOMEM, or -EIO if the output fails. */
int audit_print_table(const struct audit_report *report, FILE *out);
int audit_print_json(const struct audit_report *report, FILE *out);

#endif
