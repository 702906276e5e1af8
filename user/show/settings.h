/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The settings of a group: as lines that "socksteer set" takes back, as the sentence that says what
 * changed, and as JSON.
 */
#ifndef SOCKSTEER_SHOW_SETTINGS_H
#define SOCKSTEER_SHOW_SETTINGS_H

#include "socksteer/types.h"
#include <jansson.h>
#include <stdio.h>

void settings_print(const struct settings *settings, FILE *out);
void settings_print_change(const char *group, const struct settings *before,
			   const struct settings *after, FILE *out);

/* -ENOMEM, or -EIO if the output fails. */
int settings_print_json(const char *group, const struct settings *settings, FILE *out);

/* All keys with their values as text. NULL without memory, see show/json.h. */
json_t *json_of_settings(const struct settings *settings);

#endif
