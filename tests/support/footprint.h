/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * footprint: what a look from outside finds of socksteer on a group in the current network, and in
 * the bpffs of this sandbox.
 */
#ifndef SUPPORT_FOOTPRINT_H
#define SUPPORT_FOOTPRINT_H

#include "worker/listener.h"

#include <stddef.h>
#include <stdint.h>

struct footprint {
	size_t nr_listeners; /* of the group, 0 if nobody listens there */
	size_t nr_processes; /* that hold them */
	size_t nr_workers;
	uint32_t prog_type; /* enum bpf_prog_type of what is attached, 0 for nothing */
	uint32_t prog_id;
};

/* The group that listens here. */
void footprint_look(const struct endpoint *endpoint, struct footprint *ret_footprint);

/* Expects that no program is attached to the group, and that nothing is pinned. */
void expect_no_footprint(const struct endpoint *endpoint, const char *what);

/* The same, and that the group serves. */
void expect_untouched(const struct endpoint *endpoint, const char *what);

/* A number in decimal, for the arguments of a program. */
#define NUMBER_BYTES 24
const char *number_format(uint64_t number, char ret_text[NUMBER_BYTES]);

/* The inode number of the current network, as --netns takes it. */
const char *network_format(char ret_text[NUMBER_BYTES]);

/*
 * Shows the names of the kernel that socksteer looks for, and no others, in /proc/kallsyms of this
 * sandbox. Each run reads the list several times, 200,000 lines, which is most of its time.
 */
void kallsyms_shorten(void);
/* Shows the whole list again, for tests of what it is read with. */
void kallsyms_restore(void);

#endif
