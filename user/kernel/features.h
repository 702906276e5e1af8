/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the running kernel offers and what this process may do. Asked of BTF and of the process's
 * capabilities, never of version numbers.
 */
#ifndef SOCKSTEER_KERNEL_FEATURES_H
#define SOCKSTEER_KERNEL_FEATURES_H

#include "base/failure.h"
#include <stddef.h>
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

/* A capability, by number and by name. */
struct right {
	unsigned int capability;
	const char *name;
};

#define RIGHTS_MAX 4

/*
 * All that this kernel asks for, whatever a command is about to do:
 *
 * - CAP_BPF to load programs and maps; attaching needs no more than a member's descriptor, and
 *   sk_reuseport is none of the program types that ask for CAP_NET_ADMIN;
 * - CAP_PERFMON for iterators, tracepoints and reads of kernel memory;
 * - CAP_SYS_PTRACE to copy listeners of processes of other users, and to look at their /proc/PID/ns;
 * - CAP_SYS_ADMIN before Linux 6.2 only, where libbpf looks for a kfunc in the types of modules.
 *
 * Looking up programs by their id takes CAP_SYS_ADMIN as well. Only "attach --force" does that, which
 * does without where it is missing.
 */
int rights_needed(struct right ret_rights[RIGHTS_MAX], size_t *ret_nr_rights,
		  struct failure *failure);

/* What any kernel may ask for: all of the above. The kernel is not looked at. */
void rights_list(struct right ret_rights[RIGHTS_MAX]);

/*
 * Fails with EXIT_MISSING when a right or the kernel's BTF is missing, and names it. Missing signals
 * are no failure: what is left still steers.
 */
int features_probe(struct features *ret_features, struct failure *failure);

#endif
