/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the running kernel offers and what this process may do. Asked of BTF and of the process's
 * capabilities, never of version numbers.
 */
#ifndef SOCKSTEER_KERNEL_FEATURES_H
#define SOCKSTEER_KERNEL_FEATURES_H

#include "base/failure.h"
#include <stdint.h>

struct features {
	uint32_t nr_cpus; /* possible CPUs: the values of a per-CPU map */
	char signals_missing[256]; /* names of live signals that cannot be read, or "" */
};

/*
 * What a command is about to do: looking takes fewer rights than changing.
 */
enum purpose {
	PURPOSE_LOOK,
	PURPOSE_CHANGE,
};

/* Fails with EXIT_MISSING when a capability or the kernel's BTF is missing, and names it. */
int rights_check(enum purpose purpose, struct failure *failure);

/*
 * Fails with EXIT_MISSING when a right or the kernel's BTF is missing, and names it. Missing signals
 * are no failure: what is left still steers.
 */
int features_probe(struct features *ret_features, struct failure *failure);

#endif
