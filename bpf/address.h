/* SPDX-License-Identifier: GPL-2.0-only */
/* The local address of a socket, as types.h has it: network order, IPv4 in the first four bytes. */
#ifndef SOCKSTEER_ADDRESS_H
#define SOCKSTEER_ADDRESS_H

#include "kernel_types.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* *ret_address is all zeros before. */
static __always_inline void socket_address(struct sock *sk, __u8 (*ret_address)[16])
{
	if (sk->__sk_common.skc_family == AF_INET)
		__builtin_memcpy(ret_address, &sk->__sk_common.skc_rcv_saddr, 4);
	else
		BPF_CORE_READ_INTO(ret_address, sk, __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr8);
}

#endif
