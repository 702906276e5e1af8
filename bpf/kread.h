/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one way to read kernel memory. Addresses are plain numbers, so both methods take the same:
 *
 * - bpf_rdonly_cast (kernel commit fd264ca02094, since 6.2): a plain load, nearly free;
 * - bpf_probe_read_kernel: a call per read, for 6.1. Delete it when 6.1 is no longer supported.
 *
 * A wrong address reads as zeros with either, it never faults. Whether a field exists is asked with
 * bpf_core_field_exists before it is read.
 */
#ifndef SOCKSTEER_KREAD_H
#define SOCKSTEER_KREAD_H

#include "kernel_types.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* Set by user space before loading, from the running kernel's BTF. */
const volatile _Bool has_rdonly_cast;

extern void *bpf_rdonly_cast(void *address, __u32 btf_id) __ksym __weak;

#define kread(type, address, field)                                                                \
	({                                                                                         \
		typeof(((type *)0)->field) value_;                                                 \
		if (has_rdonly_cast) {                                                             \
			type *object_ = bpf_rdonly_cast((void *)(address),                         \
							bpf_core_type_id_kernel(type));            \
			value_ = object_->field;                                                   \
		} else {                                                                           \
			bpf_core_read(&value_, sizeof(value_), &((type *)(address))->field);       \
		}                                                                                  \
		value_;                                                                            \
	})

/* A bare pointer. A cast needs a type that the kernel's BTF has; this one begins with a pointer. */
#define kread_pointer(address) ((__u64)kread(struct list_head, address, next))

/* The address of a field, without reading anything. */
#define kaddress(type, address, field)                                                             \
	((__u64)(address) + bpf_core_field_offset(type, field))

/* From the address of a member to that of the structure around it. */
#define kcontainer(type, address, field) ((__u64)(address)-bpf_core_field_offset(type, field))

#endif
