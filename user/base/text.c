/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/text.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int text_to_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret_value)
{
	unsigned long long value;
	char *end;

	/* strtoull accepts signs and spaces; we do not. */
	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (*end)
		return -EINVAL;
	if (errno == ERANGE || value < min || value > max)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

void text_of_address(uint32_t family, const uint8_t address[16], uint32_t port, char *ret_text)
{
	char text[INET6_ADDRSTRLEN];

	if (!inet_ntop((int)family, address, text, sizeof(text)))
		snprintf(text, sizeof(text), "?");
	snprintf(ret_text, ADDRESS_TEXT_SIZE, family == AF_INET6 ? "[%s]:%u" : "%s:%u", text, port);
}

static size_t escape_byte(char byte, char text[5])
{
	unsigned char value = (unsigned char)byte;

	if (value >= 0x20 && value < 0x7f && value != '\\') {
		text[0] = byte;
		text[1] = '\0';
		return 1;
	}
	return (size_t)snprintf(text, 5, "\\x%02x", value);
}

void text_escape(const char *name, size_t name_size, char *ret_text, size_t ret_text_size)
{
	size_t used = 0, i;
	char text[5];

	for (i = 0; i < name_size && name[i]; i++) {
		size_t length = escape_byte(name[i], text);

		if (used + length + 1 > ret_text_size)
			break;
		memcpy(ret_text + used, text, length);
		used += length;
	}
	ret_text[used] = '\0';
}
