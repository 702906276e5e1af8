/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Other processes' listeners. A copy of a descriptor keeps the listener alive after its owner died,
 * and its clients hanging; so copies live inside one function here and are closed at once.
 */
#ifndef SOCKSTEER_KERNEL_REMOTE_H
#define SOCKSTEER_KERNEL_REMOTE_H

#include <stdint.h>

/*
 * Copies descriptor fd of process pid and makes sure that it is the socket with this cookie. The
 * caller owns *ret_fd and closes it before it does anything that can wait.
 * -ESRCH: the process died; -EPERM: no right over it; -ESTALE: another file is there by now.
 */
int remote_listener_take(uint32_t pid, uint32_t fd, uint64_t cookie, int *ret_fd);

/* SO_ATTACH_REUSEPORT_EBPF and SO_DETACH_REUSEPORT_BPF on any member's descriptor. -errno. */
int reuseport_attach(int listener_fd, int program_fd);
int reuseport_detach(int listener_fd);

#endif
