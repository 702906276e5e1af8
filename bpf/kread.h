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

/*
 * Names a constant that the verifier of kernels with bpf_rdonly_cast has; CO-RE answers with a number
 * in the instruction, which costs nothing at run time.
 */
enum special_kfunc_type {
	KF_bpf_rdonly_cast,
};
#define has_rdonly_cast bpf_core_enum_value_exists(enum special_kfunc_type, KF_bpf_rdonly_cast)

extern void *bpf_rdonly_cast(void *address, __u32 btf_id) __ksym __weak;

#define kread(type, address, field)                                                                \
	({                                                                                         \
		typeof(((type *)0)->field) value_;                                                 \
		if (has_rdonly_cast) {                                                             \
			type *object_ =                                                            \
				bpf_rdonly_cast((void *)(address), bpf_core_type_id_kernel(type)); \
			value_ = object_->field;                                                   \
		} else {                                                                           \
			bpf_core_read(&value_, sizeof(value_), &((type *)(address))->field);       \
		}                                                                                  \
		value_;                                                                            \
	})

/*
 * A bare pointer, as a number. A cast needs a type of the kernel's; this one begins with 64 bits that
 * are no pointer, so that the verifier takes what is read for the number that it is.
 */
#define kread_pointer(address) ((__u64)kread(struct timespec64, address, tv_sec))

/* The address of a field, without reading anything. */
#define kaddress(type, address, field) ((__u64)(address) + bpf_core_field_offset(type, field))

/* From the address of a member to that of the structure around it. */
#define kcontainer(type, address, field) ((__u64)(address)-bpf_core_field_offset(type, field))

#endif
