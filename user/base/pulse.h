/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pulse of commands that look again and again until they are told to end: waits for the next
 * beat, for input, or for a signal, whichever comes first. Signals come through a descriptor, so that
 * each command ends between two steps and never in one.
 */
#ifndef SOCKSTEER_BASE_PULSE_H
#define SOCKSTEER_BASE_PULSE_H

#include <stdint.h>

struct pulse {
	int signals; /* owned */
	int timer; /* owned */
};

#define PULSE_NONE                                                                                 \
	(struct pulse)                                                                             \
	{                                                                                          \
		-1, -1                                                                             \
	}

/* Why a wait ended; several at once are possible. */
enum pulse_reason {
	PULSE_BEAT = 1 << 0,
	PULSE_INPUT = 1 << 1, /* there is something to read, or its other end is gone */
	PULSE_END = 1 << 2, /* SIGINT, SIGTERM, SIGQUIT, or SIGHUP: time to end */
	PULSE_RESIZED = 1 << 3, /* SIGWINCH: the terminal has another size */
};

/* Blocks these signals for the rest of the process. The first beat comes at once. -errno. */
int pulse_init(struct pulse *ret_pulse, uint64_t interval_ns);
void pulse_done(struct pulse *pulse);

/* Waits; input is a descriptor or -1. A set of reasons, or -errno. Missed beats count as one. */
int pulse_wait(struct pulse *pulse, int input);

#endif
