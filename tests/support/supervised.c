/* SPDX-License-Identifier: GPL-2.0-only */
#include "support/supervised.h"
#include "base/cleanup.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Where the program has the descriptor, far above those that it opens itself. */
#define NOTIFICATIONS_FD 500

#define NOTIFY BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define NOTIFY_IF(value) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, 1), NOTIFY

static struct sock_filter instructions[] = {
	LOAD(nr),
	NOTIFY_IF(SYS_pidfd_getfd),
	NOTIFY_IF(SYS_pidfd_open),
	NOTIFY_IF(SYS_clone),
	NOTIFY_IF(SYS_shutdown),
	NOTIFY_IF(SYS_bind),
	NOTIFY_IF(SYS_listen),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 1, 0),
	ALLOW,
	/* The command fits in the lower half of the argument, which is first on these machines. */
	LOAD(args[0]),
	NOTIFY_IF(BPF_MAP_UPDATE_ELEM),
	ALLOW,
};

static const struct {
	int number;
	const char *name;
} names[] = {
	{ SYS_pidfd_getfd, "pidfd_getfd" },
	{ SYS_pidfd_open, "pidfd_open" },
	{ SYS_clone, "clone" },
	{ SYS_shutdown, "shutdown" },
	{ SYS_bind, "bind" },
	{ SYS_listen, "listen" },
	{ SYS_bpf, "bpf(MAP_UPDATE_ELEM)" },
};

/* In the child, which hands the descriptor on over the exec. */
static int become_supervised(void *argument)
{
	const struct sock_fprog filter = {
		.len = sizeof(instructions) / sizeof(instructions[0]),
		.filter = instructions,
	};
	long fd;

	(void)argument;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL))
		return -errno;
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		     &filter);
	if (fd < 0 || dup2((int)fd, NOTIFICATIONS_FD) < 0)
		return -errno;
	return 0;
}

static bool has_notifications(void *argument)
{
	struct supervised *supervised = argument;
	int process CLEANUP(cleanup_fd) = pidfd_open(supervised->program.pid, 0);

	cr_assert(process >= 0, "pidfd_open: %s", strerror(errno));
	supervised->notifications = pidfd_getfd(process, NOTIFICATIONS_FD, 0);
	return supervised->notifications >= 0;
}

void supervised_start_list(struct supervised *ret_supervised, const char *const *arguments)
{
	static const struct program_setup setup = { .prepare = become_supervised };

	*ret_supervised = (struct supervised){ .notifications = -1 };
	program_start(&ret_supervised->program, &setup, arguments);
	cr_assert(wait_until(has_notifications, ret_supervised, DEADLINE_MS));
}

/*
 * Before Linux 6.11 a process counts as a user of its filter until somebody has waited for it, so this
 * waits for the program as soon as it has ended. A child that outlives it is init's.
 */
static void reap(struct supervised *supervised)
{
	pid_t pid = supervised->program.pid;

	if (!supervised->has_ended)
		supervised->has_ended = waitpid(pid, &supervised->wait_status, WNOHANG) == pid;
}

static bool has_news(void *argument)
{
	struct supervised *supervised = argument;
	struct pollfd input = { .fd = supervised->notifications, .events = POLLIN };

	reap(supervised);
	return poll(&input, 1, 0) == 1;
}

/* True if somebody stopped; false if there is nobody any more who could. */
static bool await_news(struct supervised *supervised)
{
	struct pollfd input = { .fd = supervised->notifications, .events = POLLIN };

	cr_assert(wait_until(has_news, supervised, DEADLINE_MS), "nobody stops, and nobody ends");
	cr_assert_eq(poll(&input, 1, 0), 1);
	return input.revents & POLLIN;
}

bool supervised_next(struct supervised *supervised)
{
	struct seccomp_notif notification;

	while (await_news(supervised)) {
		memset(&notification, 0, sizeof(notification));
		/* Who stopped may have been ended meanwhile. */
		if (ioctl(supervised->notifications, SECCOMP_IOCTL_NOTIF_RECV, &notification))
			continue;
		supervised->id = notification.id;
		supervised->pid = (pid_t)notification.pid;
		supervised->number = notification.data.nr;
		return true;
	}
	return false;
}

void supervised_let(const struct supervised *supervised)
{
	struct seccomp_notif_resp answer = {
		.id = supervised->id,
		.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE,
	};

	cr_assert(!ioctl(supervised->notifications, SECCOMP_IOCTL_NOTIF_SEND, &answer) ||
			  errno == ENOENT,
		  "%s: %s", supervised_call_name(supervised), strerror(errno));
}

bool supervised_is_child(const struct supervised *supervised)
{
	return supervised->pid != supervised->program.pid;
}

const char *supervised_call_name(const struct supervised *supervised)
{
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (supervised->number == names[i].number)
			return names[i].name;
	return "a call";
}

void supervised_run_on(struct supervised *supervised)
{
	while (supervised_next(supervised))
		supervised_let(supervised);
}

void supervised_wait(struct supervised *supervised, struct said *ret_said)
{
	/* Newer kernels say that it is no user any more a moment before it can be waited for. */
	if (!supervised->has_ended)
		cr_assert_eq(waitpid(supervised->program.pid, &supervised->wait_status, 0),
			     supervised->program.pid);
	supervised->has_ended = true;
	program_collect(&supervised->program, supervised->wait_status, ret_said);
	cleanup_fd(&supervised->notifications);
	supervised->notifications = -1;
}
