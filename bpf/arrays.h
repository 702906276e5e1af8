/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two maps that are read as what they are in the kernel, an array in memory: listeners, whose sockets
 * no helper gives, and worker_load, where a helper call per CPU would cost more than all the rest of a
 * decision.
 */
#ifndef SOCKSTEER_ARRAYS_H
#define SOCKSTEER_ARRAYS_H

#include "group_maps.h"
#include "kread.h"
#include "maps.h"
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

/* Set by user space before loading: possible CPUs, which can be more than are online. */
const volatile __u32 nr_cpus = 1;

/* More possible CPUs than this are read through the helper. */
#define MAX_CPU_OFFSETS 512

static __u64 listeners_address, worker_load_address;

/* From the address that worker_load keeps of a row to the row of one CPU. */
static __u64 cpu_offset[MAX_CPU_OFFSETS];

/*
 * A pointer may not be used as a number until it was stored in a map and read back. This does both.
 */
#define pointer_number(number, pointer)                                                            \
	({                                                                                         \
		number = (__u64)(pointer);                                                         \
		*(volatile __u64 *)&number;                                                        \
	})

/* The address of worker_load's row, before a CPU's offset is added. */
static __always_inline __u64 load_cells(__u32 row)
{
	return kread_pointer(kaddress(struct bpf_array, worker_load_address, pptrs) +
			     row * sizeof(__u64));
}

static __always_inline bool loads_are_readable(void)
{
	return has_rdonly_cast && bpf_core_field_exists(struct bpf_array, pptrs) &&
	       nr_cpus <= MAX_CPU_OFFSETS;
}

/* bpf_loop callback: compares where a CPU's row is with what the map keeps of it. */
static long learn_cpu_offset(__u32 cpu, const __u64 *cells)
{
	const __u32 row = 0;
	struct load *load = bpf_map_lookup_percpu_elem(&worker_load, &row, cpu);

	if (load && cpu < MAX_CPU_OFFSETS)
		cpu_offset[cpu] = pointer_number(cpu_offset[cpu], load) - *cells;
	return 0;
}

/*
 * What never changes is learned in the first run, the address that tells so at last. Several CPUs may
 * do it at once, with one result.
 */
__noinline int arrays_learn(void)
{
	__u64 cells;

	pointer_number(worker_load_address, &worker_load);
	if (loads_are_readable()) {
		cells = load_cells(0);
		bpf_loop(nr_cpus, learn_cpu_offset, &cells, 0);
	}
	pointer_number(listeners_address, &listeners);
	return 0;
}

static __always_inline void arrays_find(void)
{
	if (!listeners_address)
		arrays_learn();
}

/* The address of the socket in a slot, 0 for none. */
static __always_inline __u64 slot_socket(__u32 slot)
{
	return kread_pointer(kaddress(struct reuseport_array, listeners_address, ptrs) +
			     slot * sizeof(__u64));
}

static __always_inline __u64 held_by_helper(__u32 row)
{
	__u64 held = 0;
	__u32 cpu;

	for (cpu = 0; cpu < nr_cpus; cpu++) {
		struct load *load = bpf_map_lookup_percpu_elem(&worker_load, &row, cpu);

		if (load)
			held += load->opened - load->closed;
	}
	return held;
}

/* The same without a call for each CPU. */
static __always_inline __u64 held_by_reading(__u32 row)
{
	__u64 cells = load_cells(row), held = 0;
	__u32 cpu;

	for (cpu = 0; cpu < nr_cpus && cpu < MAX_CPU_OFFSETS; cpu++) {
		__u64 load = cells + cpu_offset[cpu];

		held += kread_pointer(load + __builtin_offsetof(struct load, opened)) -
			kread_pointer(load + __builtin_offsetof(struct load, closed));
	}
	return held;
}

/* Connections that a worker holds, exactly. */
static __always_inline __u32 worker_held(__u32 row)
{
	__u64 held;

	if (loads_are_readable() && row < MAX_WORKERS)
		held = held_by_reading(row);
	else
		held = held_by_helper(row);
	/* Read while it moves, a sum can be a connection short of zero for a moment. */
	return (__s64)held < 0 ? 0 : (__u32)held;
}

#endif
