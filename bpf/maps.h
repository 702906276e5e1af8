/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The maps that all groups share. User space pins them once and lends the pins to every object that
 * declares them, so each object sees the same tables. Who writes what stands in types.h.
 */
#ifndef SOCKSTEER_MAPS_H
#define SOCKSTEER_MAPS_H

#include "socksteer/types.h"
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_WORKERS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct worker);
} workers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_WORKERS);
	__type(key, __u32);
	__type(value, struct load);
} worker_load SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_LISTENERS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct listener_info);
} listener_info SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_LISTENERS);
	__type(key, __u32);
	__type(value, struct load);
} listener_load SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct audits);
} audits SEC(".maps");

/* One row: which version of these layouts the pins have. Written by user space when it pins. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct layout);
} layout SEC(".maps");

/* A page for each possible event of a large restart; a reader that is told of losses rescans. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, EVENTS_BYTES);
} events SEC(".maps");

#endif
