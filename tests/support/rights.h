/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rights: a run of the program as some user with some capabilities and no other.
 */
#ifndef SUPPORT_RIGHTS_H
#define SUPPORT_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <cap-ng.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF 39
#endif

/* "nobody", of whom every system knows. */
#define NOBODY 65534

#define RIGHTS_KEPT_MAX 4

struct rights {
	const char *name;
	uid_t uid;
	unsigned int kept[RIGHTS_KEPT_MAX]; /* capabilities, ended by 0, which none of these is */
};

/*
 * For struct program_setup, with a struct rights as its argument. Where the kernel asks for
 * CAP_SYS_ADMIN as well, whoever keeps something keeps that too.
 */
int rights_keep(void *argument);

/* What socksteer is documented to need on this kernel, as in /proc/PID/status. */
uint64_t rights_documented(void);

/* True if this kernel asks for CAP_SYS_ADMIN. */
bool kernel_needs_sys_admin(void);

#endif
