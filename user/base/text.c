/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/text.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
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

static const struct {
	const char *name;
	uint64_t ns;
} units[] = {
	{ "m", 60000000000 }, { "s", 1000000000 }, { "ms", 1000000 }, { "us", 1000 }, { "ns", 1 },
};

#define NR_UNITS (sizeof(units) / sizeof(units[0]))
#define DAY_NS 86400000000000

int text_to_duration(const char *text, uint64_t *ret_ns)
{
	size_t digits = strspn(text, "0123456789"), i;
	char number[24];
	uint64_t value;
	int err;

	if (digits >= sizeof(number))
		return -EINVAL;
	memcpy(number, text, digits);
	number[digits] = '\0';
	err = text_to_u64(number, 0, DAY_NS, &value);
	if (err)
		return err;
	if (!text[digits] && !value) {
		*ret_ns = 0;
		return 0;
	}
	for (i = 0; i < NR_UNITS; i++) {
		if (strcmp(text + digits, units[i].name))
			continue;
		if (value > DAY_NS / units[i].ns)
			return -ERANGE;
		*ret_ns = value * units[i].ns;
		return 0;
	}
	return -EINVAL;
}

void text_of_duration(uint64_t ns, char *ret_text, size_t size)
{
	size_t i = 0;

	if (!ns) {
		snprintf(ret_text, size, "0");
		return;
	}
	while (ns % units[i].ns)
		i++;
	snprintf(ret_text, size, "%" PRIu64 "%s", ns / units[i].ns, units[i].name);
}

int text_to_address(const char *text, size_t length, uint32_t *ret_family, uint8_t ret_address[16])
{
	bool brackets = length >= 2 && text[0] == '[' && text[length - 1] == ']';
	char copy[INET6_ADDRSTRLEN];
	uint8_t address[16] = {};

	if (brackets) {
		text++;
		length -= 2;
	}
	if (length >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, length);
	copy[length] = '\0';
	if (inet_pton(brackets ? AF_INET6 : AF_INET, copy, address) != 1)
		return -EINVAL;
	*ret_family = brackets ? AF_INET6 : AF_INET;
	memcpy(ret_address, address, sizeof(address));
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
