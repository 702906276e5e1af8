/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The folders of groups that the daemon saw pinned. One that is gone later was removed by hand, since
 * what the daemon removes itself it takes off the list, and what a hand did is left as it is.
 */
#ifndef SOCKSTEER_DAEMON_FOLDERS_H
#define SOCKSTEER_DAEMON_FOLDERS_H

#include <stdbool.h>
#include <stddef.h>

/* All zeros is an empty list. */
struct folders {
	char **names; /* owned */
	size_t nr;
};

void folders_done(struct folders *folders);

/* Without memory the folder is not remembered: then a detach by hand goes unnoticed, nothing worse. */
void folders_add(struct folders *folders, const char *name);
void folders_remove(struct folders *folders, const char *name);
bool folders_has(const struct folders *folders, const char *name);

#endif
