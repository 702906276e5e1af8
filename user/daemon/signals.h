/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The signals that the daemon acts upon, in its event loop and nowhere else.
 */
#ifndef SOCKSTEER_DAEMON_SIGNALS_H
#define SOCKSTEER_DAEMON_SIGNALS_H

#include <systemd/sd-event.h>

/* First of all, so that a signal which comes during the start is acted upon after it. -errno. */
int signals_block(void);

/* Has each of them handled, for as long as the loop lives. -errno. */
int signals_add(sd_event *loop, sd_event_signal_handler_t handler, void *argument);

#endif
