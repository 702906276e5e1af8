/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Numbers, addresses and names, to and from text. Names that other processes chose are hostile:
 * they pass through text_escape before they reach a terminal.
 */
#ifndef SOCKSTEER_BASE_TEXT_H
#define SOCKSTEER_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "[xxxx:...:xxxx%4294967295]:65535" and the final NUL. */
#define ADDRESS_TEXT_SIZE 80

/* A decimal number, nothing before or after it. -EINVAL, or -ERANGE outside [min, max]. */
int text_to_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret_value);

/*
 * A duration such as "500us", "100ms", "2s" or "5m"; "0" needs no unit. -EINVAL for anything else,
 * -ERANGE above a day.
 */
int text_to_duration(const char *text, uint64_t *ret_ns);

/* The same the other way, in the largest unit that divides it: text_to_duration() gives it back. */
void text_of_duration(uint64_t ns, char *ret_text, size_t size);

/*
 * An address as it stands before ":PORT": "127.0.0.1", or "[::1]" in brackets. The first length
 * bytes of text are all of it; IPv4 takes the first four bytes of ret_address. -EINVAL.
 */
int text_to_address(const char *text, size_t length, uint32_t *ret_family, uint8_t ret_address[16]);

/*
 * A socket address as people write it: "127.0.0.1:80", "[::1]:80". family is AF_INET or AF_INET6,
 * address in network order. ret_text holds at least ADDRESS_TEXT_SIZE bytes.
 */
void text_of_address(uint32_t family, const uint8_t address[16], uint32_t port, char *ret_text);

/*
 * Copies name, at most name_size bytes of it, with everything that is not printable ASCII written
 * as \xNN. ret_text_size 4 * name_size + 1 always suffices; longer text is cut at a whole character.
 */
void text_escape(const char *name, size_t name_size, char *ret_text, size_t ret_text_size);

#endif
