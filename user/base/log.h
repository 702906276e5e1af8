/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The daemon's log: lines on standard error, with the priorities that the journal understands when
 * it reads them. Commands do not log; they fail with a message (failure.h).
 */
#ifndef SOCKSTEER_BASE_LOG_H
#define SOCKSTEER_BASE_LOG_H

enum log_priority {
	LOG_PRIORITY_ERROR = 3, /* as in syslog.h */
	LOG_PRIORITY_WARNING = 4,
	LOG_PRIORITY_NOTICE = 5,
	LOG_PRIORITY_INFO = 6,
};

/* One sentence without a newline. Names of other processes have been escaped. */
__attribute__((format(printf, 2, 3))) void log_line(enum log_priority priority, const char *format,
						    ...);

#endif
