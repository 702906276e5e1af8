/* SPDX-License-Identifier: GPL-2.0-only */
#include "support/program.h"
#include "base/cleanup.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* More than any test gives. */
#define ARGUMENTS_MAX 16

#define NAME "socksteer"

/* The test program is build/tests/kernel or build/tests/apps. */
static int open_program(void)
{
	char self[PATH_MAX], path[PATH_MAX + 32];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int fd;

	cr_assert(length > 0, "/proc/self/exe: %s", strerror(errno));
	self[length] = '\0';
	snprintf(path, sizeof(path), "%s/" NAME, dirname(dirname(self)));
	fd = open(path, O_PATH | O_CLOEXEC);
	cr_assert(fd >= 0, "%s: %s", path, strerror(errno));
	return fd;
}

static int open_memory(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	cr_assert(fd >= 0, "memfd_create: %s", strerror(errno));
	return fd;
}

/* In the child, where nothing may be asserted. */
static int redirect(const struct program *program)
{
	int input CLEANUP(cleanup_fd) = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (input < 0 || dup2(input, STDIN_FILENO) < 0 ||
	    dup2(program->output, STDOUT_FILENO) < 0 || dup2(program->error, STDERR_FILENO) < 0)
		return -errno;
	return 0;
}

/*
 * The program is begun through its descriptor: a user without any rights may not be allowed to walk
 * the folders to it.
 */
static void become_program(const struct program *program, const struct program_setup *setup,
			   const char *const *arguments, int executable)
{
	char *list[ARGUMENTS_MAX + 2] = { (char *)(uintptr_t)NAME };
	size_t i;

	for (i = 0; i < ARGUMENTS_MAX && arguments[i]; i++)
		list[i + 1] = (char *)(uintptr_t)arguments[i];
	/* Again after prepare, because a change of user forgets it. */
	if (redirect(program) || prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0UL, 0UL, 0UL) ||
	    (setup && setup->prepare(setup->argument)) ||
	    prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0UL, 0UL, 0UL))
		_exit(PROGRAM_UNPREPARED);
	fexecve(executable, list, environ);
	_exit(PROGRAM_UNPREPARED);
}

void program_start(struct program *ret_program, const struct program_setup *setup,
		   const char *const *arguments)
{
	int executable CLEANUP(cleanup_fd) = open_program();

	ret_program->output = open_memory("output");
	ret_program->error = open_memory("error");
	ret_program->pid = fork();
	cr_assert_geq(ret_program->pid, 0, "fork: %s", strerror(errno));
	if (!ret_program->pid)
		become_program(ret_program, setup, arguments, executable);
}

static char *read_all(int fd)
{
	struct stat info;
	char *text;

	cr_assert_eq(fstat(fd, &info), 0);
	text = calloc(1, (size_t)info.st_size + 1);
	cr_assert_not_null(text);
	cr_assert_eq(pread(fd, text, (size_t)info.st_size, 0), (ssize_t)info.st_size);
	return text;
}

char *program_error_so_far(const struct program *program)
{
	return read_all(program->error);
}

void program_forget(struct program *program)
{
	cleanup_fd(&program->output);
	cleanup_fd(&program->error);
	*program = (struct program){ .output = -1, .error = -1 };
}

void program_collect(struct program *program, int wait_status, struct said *ret_said)
{
	ret_said->code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) :
						  128 + WTERMSIG(wait_status);
	ret_said->output = read_all(program->output);
	ret_said->error = read_all(program->error);
	cr_assert_neq(ret_said->code, PROGRAM_UNPREPARED, "the run of the program fails: %s",
		      ret_said->error);
	program_forget(program);
}

void program_wait(struct program *program, struct said *ret_said)
{
	int status;

	cr_assert_eq(waitpid(program->pid, &status, 0), program->pid, "waitpid: %s",
		     strerror(errno));
	program_collect(program, status, ret_said);
}

void said_done(struct said *said)
{
	free(said->output);
	free(said->error);
	*said = (struct said){};
}

void program_run_list(struct said *ret_said, const struct program_setup *setup,
		      const char *const *arguments)
{
	struct program program;

	program_start(&program, setup, arguments);
	program_wait(&program, ret_said);
}

void program_succeeds_list(const char *const *arguments)
{
	struct said said CLEANUP(said_done) = {};

	program_run_list(&said, NULL, arguments);
	cr_assert_eq(said.code, EXIT_DONE, "%s ends with %d: %s", arguments[0], said.code,
		     said.error);
}

void expect_done(const struct said *said, const char *what, const char *words)
{
	cr_expect_eq(said->code, EXIT_DONE, "%s: code %d: %s", what, said->code, said->error);
	cr_expect(strstr(said->output, words), "%s: \"%s\" is not in \"%s\"", what, words,
		  said->output);
}

static bool is_one_sentence(const char *text)
{
	const char *end = strchr(text, '\n');

	return !strncmp(text, NAME ": ", strlen(NAME ": ")) && end && !end[1];
}

void expect_refused(const struct said *said, const char *what, enum exit_code code,
		    const char *words)
{
	cr_expect_eq(said->code, (int)code, "%s: code %d and not %d: %s", what, said->code, code,
		     said->error);
	cr_expect_str_empty(said->output, "%s: says \"%s\"", what, said->output);
	cr_expect(is_one_sentence(said->error), "%s: not one sentence: \"%s\"", what, said->error);
	cr_expect(strstr(said->error, words), "%s: \"%s\" is not in \"%s\"", what, words,
		  said->error);
}
