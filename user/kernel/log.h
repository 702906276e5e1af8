/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What libbpf has to say. It is kept quiet and remembered, so that a refusal by the verifier can be
 * shown with the end of its log and everything else stays one sentence.
 */
#ifndef SOCKSTEER_KERNEL_LOG_H
#define SOCKSTEER_KERNEL_LOG_H

#include "base/failure.h"

/* Forgets what was said so far and listens from now on. */
void kernel_log_start(void);

/* Adds the last lines that libbpf said to the message of a failure. */
void kernel_log_add_tail(struct failure *failure);

#endif
