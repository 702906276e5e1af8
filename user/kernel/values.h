/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Values of array maps. The caller gives the type that the map has, see types.h. All: 0 or -errno.
 */
#ifndef SOCKSTEER_KERNEL_VALUES_H
#define SOCKSTEER_KERNEL_VALUES_H

#include "socksteer/types.h"
#include <stddef.h>
#include <stdint.h>

int value_read(int map, uint32_t key, void *ret_value);
int value_write(int map, uint32_t key, const void *value);

/*
 * The whole map, nr_rows values of value_bytes each, a multiple of 8. Only of maps that are made for it
 * (BPF_F_MMAPABLE): workers, listener_info, members.
 */
int values_read(int map, void *ret_values, size_t value_bytes, uint32_t nr_rows);

/*
 * Writes a part of one value, and leaves the rest to whoever else writes it. Of the same maps. offset is
 * from the beginning of the value.
 */
int value_write_part(int map, uint32_t key, size_t value_bytes, size_t offset, const void *part,
		     size_t part_bytes);

/* Writes the fields of a row of members that lie between these two, both included, and no others. */
#define MEMBER_WRITE(members, slot, value, first, last)                                            \
	value_write_part(members, slot, sizeof(struct member), offsetof(struct member, first),     \
			 (const char *)(value) + offsetof(struct member, first),                   \
			 offsetof(struct member, last) + sizeof((value)->last) -                   \
				 offsetof(struct member, first))

/* Sums of per-CPU rows over all possible CPUs. */
int load_read(int map, uint32_t row, struct load *ret_load);
int counter_read(int map, uint32_t row, uint64_t *ret_count);

/* Sets a per-CPU row to zero on all CPUs. Only for rows that no live record names. */
int load_clear(int map, uint32_t row);

/* Puts a listener into a slot of a sockarray, and takes it out. A slot that is empty is no error. */
int slot_put(int listeners, uint32_t slot, int listener_fd);
int slot_clear(int listeners, uint32_t slot);
/* The cookie of the listener in a slot. -ENOENT if it is empty. */
int slot_read(int listeners, uint32_t slot, uint64_t *ret_cookie);

/* Writes the record of a listener. */
int owner_write(int conn_owner, int listener_fd, const struct conn_owner *owner);

#endif
