/* SPDX-License-Identifier: GPL-2.0-only */
#include "support/daemon.h"
#include "base/cleanup.h"
#include "kernel/values.h"
#include "steering/setting.h"
#include "support/steered.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

void config_file_new(struct config_file *file)
{
	file->fd = memfd_create("configuration", MFD_CLOEXEC);
	cr_assert_geq(file->fd, 0);
	snprintf(file->path, sizeof(file->path), "/proc/%d/fd/%d", getpid(), file->fd);
}

void config_file_done(struct config_file *file)
{
	cleanup_fd(&file->fd);
}

void config_file_write(const struct config_file *file, const char *format, ...)
{
	char text[2048];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	cr_assert_eq(ftruncate(file->fd, 0), 0);
	cr_assert_eq(pwrite(file->fd, text, (size_t)length, 0), length);
}

void daemon_start(struct program *ret_daemon, const struct program_setup *setup,
		  const struct scene *scene, const char *option)
{
	program_start(ret_daemon, setup,
		      (const char *const[]){ "run", scene->port, "--netns", scene->netns, option,
					     NULL });
}

/* True if the daemon's log has this in it. */
struct said_wait {
	const struct program *daemon;
	const char *words;
};

static bool is_said(void *argument)
{
	const struct said_wait *wait = argument;
	char *text CLEANUP(cleanup_free) = program_error_so_far(wait->daemon);

	return strstr(text, wait->words) != NULL;
}

void daemon_await_said(const struct program *daemon, const char *words)
{
	struct said_wait wait = { daemon, words };

	cr_assert(wait_until(is_said, &wait, DEADLINE_MS), "never said \"%s\"", words);
}

bool group_is_steered(const struct endpoint *endpoint)
{
	struct status status CLEANUP(status_done) = {};
	struct failure failure = {};
	char text[ENDPOINT_TEXT_BYTES];
	struct group_spec spec;

	spec_of_endpoint(endpoint, text, &spec);
	return !status_read(&spec, &status, &failure) && status.groups[0].attached_ns &&
	       status.groups[0].steered;
}

struct steered_wait {
	const struct endpoint *endpoint;
	bool is_steered;
};

static bool is_as_expected(void *argument)
{
	const struct steered_wait *wait = argument;

	return group_is_steered(wait->endpoint) == wait->is_steered;
}

void await_steered(const struct endpoint *endpoint)
{
	struct steered_wait wait = { endpoint, true };

	cr_assert(wait_until(is_as_expected, &wait, DEADLINE_MS), "never steered");
}

void await_not_steered(const struct endpoint *endpoint)
{
	struct steered_wait wait = { endpoint, false };

	cr_assert(wait_until(is_as_expected, &wait, DEADLINE_MS), "steered for ever");
}

bool has_steered_listeners(const struct scene *scene, size_t nr_listeners)
{
	struct status status CLEANUP(status_done) = {};
	struct failure failure = {};
	char text[ENDPOINT_TEXT_BYTES];
	struct group_spec spec;

	spec_of_endpoint(&scene->servers.endpoint, text, &spec);
	return !status_read(&spec, &status, &failure) && status.nr_groups == 1 &&
	       status.groups[0].steered && status.groups[0].nr_listeners == nr_listeners;
}

struct listeners_wait {
	const struct scene *scene;
	size_t nr_listeners;
};

static bool are_steered(void *argument)
{
	const struct listeners_wait *wait = argument;

	return has_steered_listeners(wait->scene, wait->nr_listeners);
}

void await_steered_listeners(const struct scene *scene, size_t nr_listeners)
{
	struct listeners_wait wait = { scene, nr_listeners };

	cr_assert(wait_until(are_steered, &wait, DEADLINE_MS), "never %zu listeners steered",
		  nr_listeners);
}

void expect_setting(const struct endpoint *endpoint, const char *name, const char *expected)
{
	char text[SETTING_TEXT_SIZE];
	struct settings settings;
	struct steered steered;

	steered_open(&steered, endpoint);
	cr_assert_eq(value_read(steered.maps.settings, 0, &settings), 0);
	setting_find(name)->print(&settings, text);
	cr_expect_str_eq(text, expected, "%s of %s is %s", name, steered.text, text);
	steered_done(&steered);
}

void daemon_stop(struct program *daemon, struct said *ret_said)
{
	kill(daemon->pid, SIGTERM);
	program_wait(daemon, ret_said);
	cr_expect_eq(ret_said->code, EXIT_DONE, "%s", ret_said->error);
}
