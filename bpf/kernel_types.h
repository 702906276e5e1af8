/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's structures, as far as we read them. CO-RE finds each field by name in the running
 * kernel's BTF, so order and size here mean nothing.
 */
#ifndef SOCKSTEER_KERNEL_TYPES_H
#define SOCKSTEER_KERNEL_TYPES_H

#include <linux/bpf.h>
#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	__s64 counter;
} atomic64_t;

typedef struct {
	__u32 val;
} kuid_t;

struct timespec64 {
	__s64 tv_sec;
};

struct list_head {
	struct list_head *next, *prev;
};

struct wait_queue_head {
	struct list_head head;
};

struct wait_queue_entry {
	void *private;
	void *func;
	struct list_head entry;
};

struct socket_wq {
	struct wait_queue_head wait;
};

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	union {
		__u8 u6_addr8[16];
	} in6_u;
};

struct sock_common {
	__be32 skc_rcv_saddr;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	unsigned char skc_reuseport : 1;
	unsigned char skc_ipv6only : 1;
	int skc_bound_dev_if;
	possible_net_t skc_net;
	struct in6_addr skc_v6_rcv_saddr;
	atomic64_t skc_cookie;
};

struct bpf_prog_aux {
	__u32 id;
	char name[16];
};

struct bpf_prog {
	enum bpf_prog_type type;
	struct bpf_prog_aux *aux;
};

struct sock;

struct sock_reuseport {
	__u16 num_socks;
	struct bpf_prog *prog;
	struct sock *socks[0];
};

struct sock {
	struct sock_common __sk_common;
	struct socket_wq *sk_wq;
	kuid_t sk_uid;
	__u16 sk_protocol;
	__u32 sk_ack_backlog;
	__u32 sk_max_ack_backlog;
	struct sock_reuseport *sk_reuseport_cb;
};

struct request_sock;

struct request_sock_queue {
	atomic_t qlen;
	struct request_sock *rskq_accept_head;
};

struct tcp_request_sock {
	__u32 snt_isn;
};

struct inet_connection_sock {
	struct request_sock_queue icsk_accept_queue;
};

struct socket {
	struct sock *sk;
};

struct file {
	void *private_data;
};

struct eventpoll {
	struct wait_queue_head wq;
	struct wait_queue_head poll_wait;
	struct file *file;
};

struct epitem {
	struct eventpoll *ep;
};

struct eppoll_entry {
	struct epitem *base;
	struct wait_queue_entry wait;
};

struct reuseport_array {
	struct sock *ptrs[0];
};

struct bpf_array {
	union {
		void *pptrs[0];
	};
};

struct task_struct {
	int pid;
	int tgid;
	__u64 start_boottime;
	struct task_struct *group_leader;
	char comm[16];
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
};

#pragma clang attribute pop

/* From the kernel's include/net/tcp_states.h and include/linux/socket.h. */
#define TCP_ESTABLISHED 1
#define TCP_CLOSE 7
#define TCP_CLOSE_WAIT 8
#define TCP_LISTEN 10
#define AF_INET 2
#define AF_INET6 10
#define IPPROTO_TCP 6
#define IPPROTO_MPTCP 262

#endif
