/* SPDX-License-Identifier: GPL-2.0-only */
#include "show/json.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <errno.h>

json_t *json_of_name(const char *name, size_t name_size)
{
	CLEANUP(cleanup_free) char *text = malloc(4 * name_size + 1);

	if (!text)
		return NULL;
	text_escape(name, name_size, text, 4 * name_size + 1);
	return json_string(text);
}

json_t *json_of_address(uint32_t family, const uint8_t address[16])
{
	char text[INET6_ADDRSTRLEN];

	if (!inet_ntop((int)family, address, text, sizeof(text)))
		return json_string("?");
	return json_string(text);
}

json_t *json_of_family(uint32_t family)
{
	return json_string(family == AF_INET6 ? "inet6" : "inet");
}

json_t *json_with(json_t *object, const char *key, json_t *value)
{
	if (!object) {
		json_decref(value);
		return NULL;
	}
	if (json_object_set_new(object, key, value)) {
		json_decref(object);
		return NULL;
	}
	return object;
}

json_t *json_with_number(json_t *object, const char *key, uint64_t value)
{
	return json_with(object, key, json_integer((json_int_t)value));
}

json_t *json_with_text(json_t *object, const char *key, const char *text)
{
	return json_with(object, key, text[0] ? json_string(text) : json_null());
}

json_t *json_with_item(json_t *array, json_t *item)
{
	if (!array) {
		json_decref(item);
		return NULL;
	}
	if (json_array_append_new(array, item)) {
		json_decref(array);
		return NULL;
	}
	return array;
}

static int print(json_t *document, size_t flags, FILE *out)
{
	int err;

	if (!document)
		return -ENOMEM;
	err = json_dumpf(document, out, flags);
	json_decref(document);
	fputc('\n', out);
	return err || ferror(out) ? -EIO : 0;
}

int json_print(json_t *document, FILE *out)
{
	return print(document, JSON_INDENT(2), out);
}

int json_print_line(json_t *document, FILE *out)
{
	return print(document, JSON_COMPACT, out);
}
