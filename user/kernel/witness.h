/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A tracing program of one's own that reports every listener that joins or leaves, for as long as the
 * witness lives. Independent of what is pinned, and of any other reader.
 */
#ifndef SOCKSTEER_KERNEL_WITNESS_H
#define SOCKSTEER_KERNEL_WITNESS_H

#include "base/failure.h"
#include "socksteer/types.h"
#include <stdint.h>

/* Called for each record; the record is only valid during the call. */
typedef void (*witness_handler)(const struct witness_record *record, void *argument);

struct witness;

/* Loads the program and attaches it. */
int witness_new(witness_handler handler, void *argument, struct witness **ret_witness,
		struct failure *failure);
void witness_free(struct witness *witness);

/* A descriptor that is readable when there are records. Borrowed. */
int witness_get_fd(const struct witness *witness);

/* Hands all waiting records to the handler. -errno. */
int witness_drain(struct witness *witness);

/* Records that found no room since the witness began. */
uint64_t witness_nr_lost(const struct witness *witness);

#endif
