/* SPDX-License-Identifier: GPL-2.0-only */
#include "support/traced.h"
#include "base/cleanup.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* A stop that ptrace calls an event has its kind in the second byte of the stop's status. */
#define SECCOMP_STOP (SIGTRAP | (PTRACE_EVENT_SECCOMP << 8))
/* What PTRACE_O_TRACESYSGOOD makes of the stop after a system call. */
#define CALL_STOP (SIGTRAP | 0x80)

#define TRACE BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE)
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
/* The next instruction if equal, else the one after it. */
#define IF_EQUAL(value) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, 1)
#define TRACE_IF(value) IF_EQUAL(value), TRACE
#define ALLOW_UNLESS(value)                                                                        \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 1, 0),                                        \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Architectures have the older calls or only the newer ones. */
static struct sock_filter instructions[] = {
	LOAD(nr),
	TRACE_IF(SYS_flock),
	TRACE_IF(SYS_pidfd_getfd),
	TRACE_IF(SYS_setsockopt),
	TRACE_IF(SYS_mkdirat),
	TRACE_IF(SYS_unlinkat),
#ifdef SYS_mkdir
	TRACE_IF(SYS_mkdir),
	TRACE_IF(SYS_unlink),
	TRACE_IF(SYS_rmdir),
#endif
	ALLOW_UNLESS(SYS_bpf),
	/* The command fits in the lower half of the argument, which is first on these machines. */
	LOAD(args[0]),
	TRACE_IF(BPF_MAP_UPDATE_ELEM),
	TRACE_IF(BPF_MAP_DELETE_ELEM),
	TRACE_IF(BPF_PROG_LOAD),
	TRACE_IF(BPF_OBJ_PIN),
	TRACE_IF(BPF_RAW_TRACEPOINT_OPEN),
	TRACE_IF(BPF_LINK_CREATE),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the filter reads the lower half first");

static const struct sock_fprog filter = {
	.len = sizeof(instructions) / sizeof(instructions[0]),
	.filter = instructions,
};

/*
 * In the child. Leaks are looked for with ptrace, of which there is one at a time, so a sanitizer
 * must not try; the options are read when the program begins.
 */
static int become_traced(void *argument)
{
	const char *sanitizer = getenv("ASAN_OPTIONS");
	char options[1024];

	(void)argument;
	snprintf(options, sizeof(options), "%s:detect_leaks=0", sanitizer ? sanitizer : "");
	if (setenv("ASAN_OPTIONS", options, 1) || prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL) ||
	    ptrace(PTRACE_TRACEME, 0, NULL, NULL) ||
	    prctl(PR_SET_SECCOMP, (unsigned long)SECCOMP_MODE_FILTER, &filter, 0UL, 0UL))
		return -errno;
	return 0;
}

static void request(const struct traced *traced, enum __ptrace_request kind, unsigned long data)
{
	cr_assert_eq(ptrace(kind, traced->program.pid, NULL, data), 0, "ptrace %d: %s", (int)kind,
		     strerror(errno));
}

/* Waits for the next stop; returns its status, or 0 when there is none because it has ended. */
static int wait_for_stop(struct traced *traced)
{
	int status;

	cr_assert_eq(waitpid(traced->program.pid, &status, 0), traced->program.pid, "waitpid: %s",
		     strerror(errno));
	if (WIFSTOPPED(status))
		return status >> 8;
	traced->has_ended = true;
	traced->wait_status = status;
	return 0;
}

void traced_start_list(struct traced *ret_traced, const char *const *arguments)
{
	static const struct program_setup setup = { .prepare = become_traced };

	*ret_traced = (struct traced){};
	program_start(&ret_traced->program, &setup, arguments);
	cr_assert_eq(wait_for_stop(ret_traced), SIGTRAP, "socksteer does not begin");
	request(ret_traced, PTRACE_SETOPTIONS,
		PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD);
}

static void read_call(struct traced *traced)
{
	struct __ptrace_syscall_info info = {};
	size_t i;

	cr_assert_gt(ptrace(PTRACE_GET_SYSCALL_INFO, traced->program.pid, sizeof(info), &info), 0,
		     "PTRACE_GET_SYSCALL_INFO: %s", strerror(errno));
	if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
		traced->result = info.exit.rval;
		return;
	}
	traced->number = info.seccomp.nr;
	for (i = 0; i < sizeof(traced->arguments) / sizeof(traced->arguments[0]); i++)
		traced->arguments[i] = info.seccomp.args[i];
}

/* A signal that is on its way to the program is handed on. */
static bool run_to(struct traced *traced, enum __ptrace_request how, int wanted)
{
	int stop = 0;

	while (!traced->has_ended) {
		bool is_signal = stop && stop >> 8 == 0 && stop != CALL_STOP;

		request(traced, how, is_signal ? (unsigned long)stop : 0);
		stop = wait_for_stop(traced);
		if (stop != wanted)
			continue;
		read_call(traced);
		return true;
	}
	return false;
}

bool traced_next(struct traced *traced)
{
	return run_to(traced, PTRACE_CONT, SECCOMP_STOP);
}

void traced_do_call(struct traced *traced)
{
	cr_assert(run_to(traced, PTRACE_SYSCALL, CALL_STOP), "socksteer ended in the midst of %s",
		  call_name(traced));
}

bool traced_next_that(struct traced *traced, bool (*holds)(const struct traced *traced))
{
	while (traced_next(traced))
		if (holds(traced))
			return true;
	return false;
}

bool call_is_flock(const struct traced *traced)
{
	return traced->number == SYS_flock;
}

bool call_copies_listener(const struct traced *traced)
{
	return traced->number == SYS_pidfd_getfd;
}

bool call_pins(const struct traced *traced)
{
	return traced->number == SYS_bpf && traced->arguments[0] == BPF_OBJ_PIN;
}

bool call_attaches_program(const struct traced *traced)
{
	return traced->number == SYS_setsockopt && traced->arguments[1] == SOL_SOCKET &&
	       traced->arguments[2] == SO_ATTACH_REUSEPORT_EBPF;
}

static const struct {
	uint64_t number;
	const char *name;
} names[] = {
	{ SYS_flock, "flock" },		  { SYS_pidfd_getfd, "pidfd_getfd" },
	{ SYS_setsockopt, "setsockopt" }, { SYS_mkdirat, "mkdirat" },
	{ SYS_unlinkat, "unlinkat" },
#ifdef SYS_mkdir
	{ SYS_mkdir, "mkdir" },		  { SYS_unlink, "unlink" },
	{ SYS_rmdir, "rmdir" },
#endif
};

static const struct {
	uint64_t command;
	const char *name;
} bpf_names[] = {
	{ BPF_MAP_UPDATE_ELEM, "bpf(MAP_UPDATE_ELEM)" },
	{ BPF_MAP_DELETE_ELEM, "bpf(MAP_DELETE_ELEM)" },
	{ BPF_PROG_LOAD, "bpf(PROG_LOAD)" },
	{ BPF_OBJ_PIN, "bpf(OBJ_PIN)" },
	{ BPF_RAW_TRACEPOINT_OPEN, "bpf(RAW_TRACEPOINT_OPEN)" },
	{ BPF_LINK_CREATE, "bpf(LINK_CREATE)" },
};

const char *call_name(const struct traced *traced)
{
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (traced->number == names[i].number)
			return names[i].name;
	for (i = 0; i < sizeof(bpf_names) / sizeof(bpf_names[0]); i++)
		if (traced->number == SYS_bpf && traced->arguments[0] == bpf_names[i].command)
			return bpf_names[i].name;
	return "a call";
}

void traced_kill(struct traced *traced)
{
	cr_assert_eq(kill(traced->program.pid, SIGKILL), 0);
	while (!traced->has_ended)
		wait_for_stop(traced);
	program_forget(&traced->program);
}

void traced_run_on(struct traced *traced, struct said *ret_said)
{
	while (traced_next(traced))
		;
	program_collect(&traced->program, traced->wait_status, ret_said);
}
