/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What no event tells the daemon: that somebody attached another program over ours, or removed our pins
 * by hand. A look costs microseconds, so it can be taken often.
 */
#ifndef SOCKSTEER_DAEMON_WATCH_H
#define SOCKSTEER_DAEMON_WATCH_H

#include "steering/pinned.h"

struct watch;

enum watch_change {
	WATCH_NOTHING,
	WATCH_PROGRAM, /* a group has another program than at the last look */
	WATCH_PINS, /* the shared tables are gone, or others */
};

int watch_new(struct watch **ret_watch); /* -ENOMEM */
void watch_free(struct watch *watch);

/* Which groups to look at from now on: takes copies of what it needs. -ENOMEM. */
int watch_set_groups(struct watch *watch, const struct pinned *pinned);

/* Remembers which pins are the present ones. */
void watch_set_pins(struct watch *watch);

/* What changed since the last look. */
enum watch_change watch_look(struct watch *watch);

#endif
