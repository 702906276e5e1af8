/* SPDX-License-Identifier: GPL-2.0-only */
#include "support/foreign.h"
#include "base/cleanup.h"
#include "support/sandbox.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* More than any test gives. */
#define ARGUMENTS_MAX 16

/* Folders that nftw() keeps open: more than any server nests. */
#define FOLDERS_MAX 8

static struct foreign foreign;

void foreign_enter(void)
{
	sandbox_enter();
	strcpy(foreign.folder, "/tmp/socksteer-apps-XXXXXX");
	cr_assert_not_null(mkdtemp(foreign.folder), "%s: %s", foreign.folder, strerror(errno));
	cr_assert_eq(endpoint_parse(FOREIGN_ADDRESS, FOREIGN_PORT, &foreign.endpoint), 0);
}

const struct foreign *foreign_get(void)
{
	return &foreign;
}

static int remove_file(const char *path, const struct stat *info, int kind, struct FTW *place)
{
	(void)info;
	(void)kind;
	(void)place;
	return remove(path);
}

static bool has_ended(void *argument)
{
	(void)argument;
	return waitpid(foreign.pid, NULL, WNOHANG) != 0;
}

void foreign_leave(void)
{
	if (foreign.pid) {
		kill(foreign.pid, SIGTERM);
		cr_expect(wait_until(has_ended, NULL, DEADLINE_MS), "the server does not end");
	}
	nftw(foreign.folder, remove_file, FOLDERS_MAX, FTW_DEPTH | FTW_PHYS);
}

void foreign_write(const char *name, const char *text)
{
	FILE *file CLEANUP(cleanup_file) = NULL;
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", foreign.folder, name);
	file = fopen(path, "we");
	cr_assert_not_null(file, "%s: %s", path, strerror(errno));
	cr_assert_geq(fputs(text, file), 0);
	cr_assert_eq(fflush(file), 0, "%s: %s", path, strerror(errno));
}

/* Servers are not in the path of every user. */
static void find_program(const char *name, char ret_path[64])
{
	static const char *const folders[] = { "/usr/sbin", "/usr/bin", "/usr/local/sbin",
					       "/usr/local/bin" };
	size_t i;

	for (i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(ret_path, 64, "%s/%s", folders[i], name);
		if (!access(ret_path, X_OK))
			return;
	}
	cr_skip_test("%s is not installed", name);
}

/*
 * In the child. What the server says goes into its folder. When the test is killed the server gets
 * a chance to take its workers along.
 */
static void become_foreign(const char *path, const char *const *command)
{
	char *list[ARGUMENTS_MAX + 1] = {};
	int output;
	size_t i;

	for (i = 0; i < ARGUMENTS_MAX && command[i]; i++)
		list[i] = (char *)(uintptr_t)command[i];
	if (chdir(foreign.folder) || prctl(PR_SET_PDEATHSIG, (unsigned long)SIGTERM, 0UL, 0UL, 0UL))
		_exit(126);
	output = open("output", O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
	if (output < 0 || dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0)
		_exit(126);
	execv(path, list);
	_exit(127);
}

void foreign_start_list(const char *const *command)
{
	char path[64];

	find_program(command[0], path);
	foreign.pid = fork();
	cr_assert_geq(foreign.pid, 0, "fork: %s", strerror(errno));
	if (!foreign.pid)
		become_foreign(path, command);
}

static bool is_there(void *argument)
{
	const struct footprint *wanted = argument;
	struct footprint footprint;

	footprint_look(&foreign.endpoint, &footprint);
	return footprint.nr_listeners == wanted->nr_listeners &&
	       footprint.nr_workers == wanted->nr_workers &&
	       footprint.nr_processes == wanted->nr_processes;
}

/* What the server had to say, for messages. */
static void read_output(char ret_text[2048])
{
	char path[256];
	int fd CLEANUP(cleanup_fd) = -1;
	ssize_t length;

	snprintf(path, sizeof(path), "%s/output", foreign.folder);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? 0 : read(fd, ret_text, 2047);
	ret_text[length > 0 ? length : 0] = '\0';
}

void foreign_await(size_t nr_listeners, size_t nr_workers, size_t nr_processes)
{
	struct footprint wanted = {
		.nr_listeners = nr_listeners,
		.nr_workers = nr_workers,
		.nr_processes = nr_processes,
	};
	struct footprint found;
	char output[2048];

	if (wait_until(is_there, &wanted, DEADLINE_MS))
		return;
	footprint_look(&foreign.endpoint, &found);
	read_output(output);
	cr_assert_fail("%zu listeners of %zu workers, %zu processes: %s", found.nr_listeners,
		       found.nr_workers, found.nr_processes, output);
}

void foreign_status(struct status *ret_status)
{
	char text[ENDPOINT_TEXT_BYTES];
	struct failure failure = {};
	struct group_spec spec;

	spec_of_endpoint(&foreign.endpoint, text, &spec);
	cr_assert_eq(status_read(&spec, ret_status, &failure), 0, "%s", failure.message);
	cr_assert_eq(ret_status->nr_groups, 1);
}
