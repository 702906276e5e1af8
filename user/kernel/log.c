/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/log.h"

#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Long enough for the instruction that failed and why. */
#define TAIL_SIZE 1200

static char tail[TAIL_SIZE];

static void tail_append(const char *text, size_t length)
{
	size_t used = strlen(tail), excess;

	if (length >= sizeof(tail)) {
		text += length - (sizeof(tail) - 1);
		length = sizeof(tail) - 1;
	}
	if (used + length >= sizeof(tail)) {
		excess = used + length + 1 - sizeof(tail);
		memmove(tail, tail + excess, used - excess + 1);
		used -= excess;
	}
	memcpy(tail + used, text, length);
	tail[used + length] = '\0';
}

__attribute__((format(printf, 2, 0))) static int remember(enum libbpf_print_level level,
							  const char *format, va_list arguments)
{
	char *text = NULL;
	int length;

	if (level == LIBBPF_DEBUG)
		return 0;
	length = vasprintf(&text, format, arguments);
	if (length > 0)
		tail_append(text, (size_t)length);
	if (length >= 0)
		free(text);
	return length;
}

void kernel_log_start(void)
{
	tail[0] = '\0';
	libbpf_set_print(remember);
}

void kernel_log_add_tail(struct failure *failure)
{
	size_t length = strlen(tail);

	if (length && tail[length - 1] == '\n')
		tail[length - 1] = '\0';
	if (tail[0])
		failure_add(failure, "\n%s", tail);
}
