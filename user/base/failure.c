/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int failure_set(struct failure *failure, enum exit_code code, int err, const char *format, ...)
{
	va_list arguments;

	failure->code = code;
	va_start(arguments, format);
	vsnprintf(failure->message, sizeof(failure->message), format, arguments);
	va_end(arguments);
	return -err;
}

void failure_add(struct failure *failure, const char *format, ...)
{
	size_t length = strlen(failure->message);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(failure->message + length, sizeof(failure->message) - length, format, arguments);
	va_end(arguments);
}
