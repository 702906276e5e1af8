/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A tracing program of one's own that reports every listener that joins or leaves, for as long as the
 * watch lives. Independent of what is pinned, and of any other reader.
 */
#ifndef SOCKSTEER_KERNEL_WATCH_H
#define SOCKSTEER_KERNEL_WATCH_H

#include "base/failure.h"
#include "socksteer/types.h"
#include <stdint.h>

/* Called for each record; the record is only valid during the call. */
typedef void (*watch_handler)(const struct watch_record *record, void *argument);

struct watch;

/* Loads the program and attaches it. */
int watch_new(watch_handler handler, void *argument, struct watch **ret_watch,
	      struct failure *failure);
void watch_free(struct watch *watch);

/* A descriptor that is readable when there are records. Borrowed. */
int watch_get_fd(const struct watch *watch);

/* Hands all waiting records to the handler. -errno. */
int watch_drain(struct watch *watch);

/* Records that found no room since the watch began. */
uint64_t watch_nr_lost(const struct watch *watch);

#endif
