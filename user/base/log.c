/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void log_line(enum log_priority priority, const char *format, ...)
{
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	/* systemd sets this when standard error is the journal. */
	if (getenv("JOURNAL_STREAM"))
		fprintf(stderr, "<%d>%s\n", priority, text);
	else
		fprintf(stderr, "socksteer: %s\n", text);
}
