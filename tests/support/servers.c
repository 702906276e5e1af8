/* SPDX-License-Identifier: GPL-2.0-only */
#include "support/servers.h"
#include "base/cleanup.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* Room for the line that names SERVERS_MAX pids of up to seven digits. */
#define READY_BYTES 8192

/* More than any test gives. */
#define ARGUMENTS_MAX 24

/* The test program is build/tests/kernel, so that epoll-worker is its parent folder's neighbour. */
static void find_program(char ret_path[PATH_MAX + 32])
{
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	cr_assert(length > 0, "/proc/self/exe: %s", strerror(errno));
	self[length] = '\0';
	snprintf(ret_path, PATH_MAX + 32, "%s/epoll-worker", dirname(dirname(self)));
	cr_assert_eq(access(ret_path, X_OK), 0, "%s: %s", ret_path, strerror(errno));
}

/* In the child, where nothing may be asserted. */
static void become_server(const char *program, const char *const *arguments, int output)
{
	char *list[ARGUMENTS_MAX + 4] = { (char *)(uintptr_t)program, (char *)(uintptr_t) "--port",
					  (char *)(uintptr_t) "0" };
	size_t i;

	for (i = 0; i < ARGUMENTS_MAX && arguments[i]; i++)
		list[i + 3] = (char *)(uintptr_t)arguments[i];
	if (prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0UL, 0UL, 0UL) ||
	    dup2(output, STDOUT_FILENO) < 0)
		_exit(126);
	execv(program, list);
	_exit(127);
}

static bool read_more(int fd, char *line, size_t *used)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	ssize_t length;

	if (poll(&ready, 1, DEADLINE_MS) <= 0)
		return false;
	length = read(fd, line + *used, READY_BYTES - 1 - *used);
	if (length <= 0)
		return false;
	*used += (size_t)length;
	line[*used] = '\0';
	return true;
}

static void read_pids(struct servers *servers, const char *text)
{
	char *end;
	long pid;

	for (pid = strtol(text, &end, 10); end != text && pid > 0; pid = strtol(text, &end, 10)) {
		cr_assert_lt(servers->nr_workers, (size_t)SERVERS_MAX);
		servers->pids[servers->nr_workers++] = (pid_t)pid;
		text = end;
	}
	cr_assert_gt(servers->nr_workers, 0);
}

/* "ready 127.0.0.1:8080 pids 4211 4212" */
static void read_ready_line(struct servers *servers, const char *line)
{
	char address[ENDPOINT_TEXT_BYTES], *colon, *host = address;
	int length = 0;

	cr_assert_eq(sscanf(line, "ready %79s pids%n", address, &length), 1, "\"%s\"", line);
	cr_assert_gt(length, 0, "\"%s\"", line);
	colon = strrchr(address, ':');
	cr_assert_not_null(colon);
	*colon = '\0';
	if (host[0] == '[') {
		host++;
		host[strlen(host) - 1] = '\0';
	}
	cr_assert_eq(endpoint_parse(host, colon + 1, &servers->endpoint), 0, "\"%s\"", line);
	read_pids(servers, line + length);
}

void servers_start_list(struct servers *servers, const char *const *arguments)
{
	int input CLEANUP(cleanup_fd) = -1, output CLEANUP(cleanup_fd) = -1;
	char program[PATH_MAX + 32], line[READY_BYTES] = "";
	size_t used = 0;
	int ends[2];

	*servers = (struct servers){};
	find_program(program);
	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0, "pipe2: %s", strerror(errno));
	input = ends[0];
	output = ends[1];
	servers->pid = fork();
	cr_assert_geq(servers->pid, 0, "fork: %s", strerror(errno));
	if (!servers->pid)
		become_server(program, arguments, output);
	cleanup_fd(&output);
	output = -1;
	while (!strchr(line, '\n'))
		cr_assert(read_more(input, line, &used), "epoll-worker is not ready: \"%s\"", line);
	read_ready_line(servers, line);
}

static bool has_ended(void *argument)
{
	const pid_t *pid = argument;

	return waitpid(*pid, NULL, WNOHANG) != 0;
}

void servers_stop(struct servers *servers)
{
	if (!servers->pid)
		return;
	kill(servers->pid, SIGTERM);
	cr_assert(wait_until(has_ended, &servers->pid, DEADLINE_MS), "epoll-worker does not end");
	servers->pid = 0;
}

/* Of a dead process whose parent did not look yet only the name is left: it has no files. */
static bool has_no_files(void *argument)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/0", *(const pid_t *)argument);
	return access(path, F_OK) != 0;
}

void servers_kill(const struct servers *servers, size_t worker, int signal_number)
{
	pid_t pid = servers->pids[worker];

	cr_assert_eq(kill(pid, signal_number), 0, "kill: %s", strerror(errno));
	cr_assert(wait_until(has_no_files, &pid, DEADLINE_MS), "worker %zu does not end", worker);
}

size_t servers_find(const struct servers *servers, pid_t pid)
{
	size_t worker;

	for (worker = 0; worker < servers->nr_workers; worker++)
		if (servers->pids[worker] == pid)
			break;
	return worker;
}
