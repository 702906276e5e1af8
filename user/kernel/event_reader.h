/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reading the ring buffer of events. It has one reader: whoever reads an event takes it away.
 */
#ifndef SOCKSTEER_KERNEL_EVENT_READER_H
#define SOCKSTEER_KERNEL_EVENT_READER_H

#include "socksteer/types.h"
#include <stddef.h>

/* Called for each event; the event is only valid during the call. */
typedef void (*event_handler)(const struct event *event, void *argument);

struct event_reader;

/* events is the map's descriptor, borrowed during the call. -errno. */
int event_reader_new(int events, event_handler handler, void *argument,
		     struct event_reader **ret_reader);
void event_reader_free(struct event_reader *reader);

/* A descriptor that is readable when there are events. Borrowed. */
int event_reader_get_fd(const struct event_reader *reader);

/*
 * As many waiting events as this leave the ring no room for sure: then some were lost, and what they
 * were has to be found by a scan. An event takes 8 bytes more than its size.
 */
#define EVENTS_FULL ((int)(EVENTS_BYTES / (sizeof(struct event) + 8) * 3 / 4))

/* Hands all waiting events to the handler. Their number, or -errno. */
int event_reader_drain(struct event_reader *reader);

#endif
