/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/program.h"
#include "base/cleanup.h"
#include "kernel/remote.h"
#include "steering/place.h"

#include <errno.h>
#include <string.h>

typedef int (*listener_action)(int listener_fd, int argument);

static int put_on(int listener_fd, int program_fd)
{
	return reuseport_attach(listener_fd, program_fd);
}

static int take_off(int listener_fd, int unused)
{
	int err = reuseport_detach(listener_fd);

	(void)unused;
	return err == -ENOENT ? 0 : err;
}

/* Tries the members' descriptors until one does it. -ESTALE when none could even be copied. */
static int with_any_member(const struct group *group, listener_action action, int argument)
{
	int first = 0, err;
	size_t i, j;

	for (i = 0; i < group->nr_listeners; i++) {
		const struct listener *listener = &group->listeners[i];

		for (j = 0; j < listener->nr_holders; j++) {
			int fd CLEANUP(cleanup_fd) = -1;

			err = remote_listener_take(listener->holders[j].pid,
						   listener->holders[j].fd, listener->cookie, &fd);
			if (!err)
				err = action(fd, argument);
			if (!err)
				return 0;
			if (!first && err != -ESTALE && err != -ESRCH)
				first = err;
		}
	}
	return first ? first : -ESTALE;
}

int group_put_program(const struct group *group, int program_fd, struct failure *failure)
{
	int err = with_any_member(group, put_on, program_fd);
	const char *why = strerror(-err);
	char name[ADDRESS_TEXT_SIZE];

	if (!err || err == -ESTALE)
		return err;
	if (err == -EPERM)
		why = "a member has its filters locked (SO_LOCK_FILTER), or may not be copied";
	else if (err == -EOPNOTSUPP)
		why = "a member is an MPTCP listener";
	else if (err == -EINVAL)
		why = "the listener is in no reuseport group";
	group_name(group, name);
	return failure_set(failure, EXIT_FAILED, -err,
			   "cannot attach to %s: %s; the group was left as it was", name, why);
}

int group_take_program(const struct group *group, struct failure *failure)
{
	int err = with_any_member(group, take_off, 0);
	char name[ADDRESS_TEXT_SIZE];

	if (!err || err == -ESTALE)
		return 0;
	group_name(group, name);
	return failure_set(
		failure, err == -EPERM ? EXIT_MISSING : EXIT_FAILED, -err,
		"cannot take the program off %s: %s; its slots were emptied, so that the "
		"kernel's hash serves it",
		name, strerror(-err));
}
