/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Standing facts, each logged once: a daemon that looks again and again would otherwise fill the log
 * with one sentence.
 */
#ifndef SOCKSTEER_DAEMON_REMARKS_H
#define SOCKSTEER_DAEMON_REMARKS_H

#include "base/log.h"
#include <stddef.h>

/* All zeros is a list without remarks. */
struct remarks {
	struct remark *items; /* owned */
	size_t nr;
};

void remarks_done(struct remarks *remarks);

/*
 * Logs text unless it is what was said last of the same thing; "" is not logged, and lets the next
 * text be said again. about names the thing: a folder, an address, a duty. Both are copied, and cut
 * where they are long.
 */
void remark(struct remarks *remarks, const char *about, enum log_priority priority,
	    const char *text);

#endif
