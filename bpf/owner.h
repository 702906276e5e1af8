/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counting connections exactly once. A connection's conn_owner record moves from NEW to OPEN to
 * CLOSED by compare-and-swap, and whoever makes the move counts it; so any number of programs may
 * see the same event, in any order. Used by track and by seed.
 */
#ifndef SOCKSTEER_OWNER_H
#define SOCKSTEER_OWNER_H

#include "kernel_types.h"
#include "maps.h"

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct conn_owner);
} conn_owner SEC(".maps");

/* A row that has a new owner since the record was written is not charged. */
static __always_inline struct load *owner_worker_load(const struct conn_owner *owner)
{
	__u32 row = owner->worker;
	struct worker *worker = bpf_map_lookup_elem(&workers, &row);

	if (!worker || worker->generation != owner->worker_generation)
		return NULL;
	return bpf_map_lookup_elem(&worker_load, &row);
}

static __always_inline struct load *owner_listener_load(const struct conn_owner *owner)
{
	__u32 row = owner->listener;
	struct listener_info *info = bpf_map_lookup_elem(&listener_info, &row);

	if (!info || info->generation != owner->listener_generation)
		return NULL;
	return bpf_map_lookup_elem(&listener_load, &row);
}

/* Atomic although the cell is this CPU's: a softirq may interrupt the addition. */
static __always_inline void owner_open(struct conn_owner *owner)
{
	struct load *load;

	if (__sync_val_compare_and_swap(&owner->state, OWNER_NEW, OWNER_OPEN) != OWNER_NEW)
		return;
	load = owner_worker_load(owner);
	if (load)
		__sync_fetch_and_add(&load->opened, 1);
	load = owner_listener_load(owner);
	if (load)
		__sync_fetch_and_add(&load->opened, 1);
}

static __always_inline void owner_close(struct conn_owner *owner)
{
	struct load *load;

	if (__sync_val_compare_and_swap(&owner->state, OWNER_OPEN, OWNER_CLOSED) != OWNER_OPEN)
		return;
	load = owner_worker_load(owner);
	if (load)
		__sync_fetch_and_add(&load->closed, 1);
	load = owner_listener_load(owner);
	if (load)
		__sync_fetch_and_add(&load->closed, 1);
}

/* Established connections that the application has not closed. */
static __always_inline int state_is_held(int state)
{
	return state == TCP_ESTABLISHED || state == TCP_CLOSE_WAIT;
}

#endif
