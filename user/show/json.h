/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the JSON twins of all views have in common. The constructors return NULL without memory,
 * as those of jansson do; jansson passes a NULL on, so that it is enough to look at the whole
 * document.
 */
#ifndef SOCKSTEER_SHOW_JSON_H
#define SOCKSTEER_SHOW_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A name that another process chose, at most name_size bytes: escaped, so always valid UTF-8. */
json_t *json_of_name(const char *name, size_t name_size);

/* The address alone, such as "::1"; the port is a number of its own. */
json_t *json_of_address(uint32_t family, const uint8_t address[16]);
json_t *json_of_family(uint32_t family); /* "inet" or "inet6" */

/*
 * The object with one more member, the array with one more item. They take what they are given, and
 * return NULL if any of it is NULL or memory runs out.
 */
json_t *json_with(json_t *object, const char *key, json_t *value);
json_t *json_with_number(json_t *object, const char *key, uint64_t value);
json_t *json_with_text(json_t *object, const char *key, const char *text); /* "" becomes null */
json_t *json_with_item(json_t *array, json_t *item);

/*
 * Prints the document, over many lines or on one, and gives it back; NULL is -ENOMEM. -EIO if the
 * output fails.
 */
int json_print(json_t *document, FILE *out);
int json_print_line(json_t *document, FILE *out);

#endif
