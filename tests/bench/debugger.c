/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * debugger: stops a process as a debugger does, for some seconds: without a signal, and in another state
 * than SIGSTOP leaves. One thread, as workers have. Prints "stopped" once it is, and lets it go on at the
 * end, also when it is ended early: the kernel detaches what a dead tracer traced.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#define EXIT_USAGE 2
#define SECONDS_MAX 3600

static int failed(const char *what, pid_t pid, int err)
{
	fprintf(stderr, "debugger: cannot %s %d: %s\n", what, pid, strerror(-err));
	return EXIT_FAILURE;
}

/* Returns once the process is stopped. */
static int stop(pid_t pid)
{
	int status;

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) || ptrace(PTRACE_INTERRUPT, pid, NULL, NULL))
		return -errno;
	while (waitpid(pid, &status, __WALL) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return WIFSTOPPED(status) ? 0 : -ESRCH;
}

static void wait_for(double seconds)
{
	struct timespec rest = {
		.tv_sec = (time_t)seconds,
		.tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9),
	};

	while (nanosleep(&rest, &rest) && errno == EINTR)
		;
}

static bool parse(char **argv, pid_t *ret_pid, double *ret_seconds)
{
	char *pid_end, *seconds_end;
	long pid = strtol(argv[1], &pid_end, 10);
	double seconds = strtod(argv[2], &seconds_end);

	if (*pid_end || *seconds_end || pid <= 0 || !(seconds >= 0 && seconds <= SECONDS_MAX))
		return false;
	*ret_pid = (pid_t)pid;
	*ret_seconds = seconds;
	return true;
}

int main(int argc, char **argv)
{
	double seconds;
	pid_t pid;
	int err;

	if (argc != 3 || !parse(argv, &pid, &seconds)) {
		fputs("Usage: debugger PID SECONDS\n", stderr);
		return EXIT_USAGE;
	}
	/* Nothing may stay stopped because its script has ended. */
	prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0UL, 0UL, 0UL);
	err = stop(pid);
	if (err)
		return failed("stop", pid, err);
	puts("stopped");
	fflush(stdout);
	wait_for(seconds);
	return ptrace(PTRACE_DETACH, pid, NULL, NULL) ? failed("let go of", pid, -errno) :
							EXIT_SUCCESS;
}
