/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waiting until a draining worker holds nothing, with its progress on standard error: in place on a
 * terminal, elsewhere a line for each change, at most one a second.
 */
#ifndef SOCKSTEER_CLI_DRAIN_WAIT_H
#define SOCKSTEER_CLI_DRAIN_WAIT_H

#include "base/failure.h"
#include "steering/operate.h"
#include <stdint.h>

#define NO_TIMEOUT UINT64_MAX

/* Blocks the signals that end the waiting, until the program ends. */
void drain_wait_prepare(void);

/*
 * 0 when it holds nothing, or its process has ended. -ETIMEDOUT, -EINTR after a signal, -ECANCELED
 * when it was resumed, or -ESTALE when it is no longer steered; the failure says how much is left.
 */
int drain_wait(const struct worker_report *report, uint64_t timeout_ns, struct failure *failure);

#endif
