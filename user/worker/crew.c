/* SPDX-License-Identifier: GPL-2.0-only */
#include "crew.h"

#include "base/cleanup.h"
#include "server.h"
#include "work.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a thread needs to know. The thread frees it. */
struct post {
	struct crew *crew;
	unsigned int number;
};

/* Closes a descriptor before its owner ends, and leaves nothing to close for then. */
static void close_early(int *fd)
{
	cleanup_fd(fd);
	*fd = -1;
}

static struct listener_kind crew_listener_kind(const struct crew *crew)
{
	return (struct listener_kind){
		.has_reuseport = crew->options->has_reuseport,
		.has_mptcp = crew->options->has_mptcp,
		.is_nonblocking = !crew->options->is_blocking,
	};
}

static int crew_open_shared(struct crew *crew)
{
	return listener_open(&crew->endpoint, crew_listener_kind(crew), crew->options->backlog,
			     &crew->shared_fd);
}

/* With port 0 the kernel chooses once, here, and every worker binds what it chose. */
static int crew_reserve_port(struct crew *crew)
{
	int err = listener_bind(&crew->endpoint, crew_listener_kind(crew), &crew->reservation_fd);

	return err ? err : endpoint_of_socket(crew->reservation_fd, &crew->endpoint);
}

int crew_init(struct crew *crew, const struct worker_options *options)
{
	int err;

	memset(crew, 0, sizeof(*crew));
	crew->options = options;
	crew->shared_fd = -1;
	crew->reservation_fd = -1;
	crew->report_fd = -1;
	crew->ready_fd = -1;
	sigemptyset(&crew->signals);
	sigaddset(&crew->signals, SIGTERM);
	sigaddset(&crew->signals, SIGINT);
	sigaddset(&crew->signals, SIGCHLD);
	err = endpoint_parse(options->address, options->port, &crew->endpoint);
	if (err)
		return err;
	if (!options->has_shared_listener)
		return crew_reserve_port(crew);
	err = crew_open_shared(crew);
	return err ? err : endpoint_of_socket(crew->shared_fd, &crew->endpoint);
}

/*
 * A process closes its end of the pipe at once: the parent knows that one has died without a
 * report when it reads the end of file. Threads share one end, which crew_start() closes.
 */
static void report_ready(struct crew *crew, bool is_ready)
{
	char report = is_ready ? 'y' : 'n';

	/* The reader can only be gone when the server ends, and then nobody wants to know. */
	if (crew->ready_fd >= 0 && write(crew->ready_fd, &report, 1) < 0)
		return;
	if (!crew->options->has_threads)
		close_early(&crew->ready_fd);
}

static int worker_failed(unsigned int number, const char *what, int err)
{
	fprintf(stderr, "epoll-worker: worker %u cannot %s: %s\n", number, what, strerror(-err));
	return err;
}

static int serve_epoll(struct crew *crew, unsigned int number, int listener_fd)
{
	struct server server;
	int err = server_init(&server, listener_fd, crew->shared_fd >= 0, number, getpid());

	report_ready(crew, !err);
	if (err)
		return worker_failed(number, "watch its listener", err);
	err = server_run(&server);
	server_done(&server);
	return worker_failed(number, "go on", err);
}

static int serve_blocking(struct crew *crew, unsigned int number, int listener_fd)
{
	report_ready(crew, true);
	return worker_failed(number, "go on", server_run_blocking(listener_fd, number, getpid()));
}

/*
 * The life of a worker, in its own process or thread. It opens its listener itself: nobody else
 * has a descriptor of it, so it disappears with the worker. Returns only when it cannot go on.
 */
static int worker_run(struct crew *crew, unsigned int number)
{
	int listener_fd = crew->shared_fd;
	CLEANUP(cleanup_fd) int own_fd = -1;

	work_init();
	if (listener_fd < 0) {
		int err = listener_open(&crew->endpoint, crew_listener_kind(crew),
					crew->options->backlog, &own_fd);

		if (err) {
			report_ready(crew, false);
			return worker_failed(number, "listen", err);
		}
		listener_fd = own_fd;
	}
	if (crew->options->is_blocking)
		return serve_blocking(crew, number, listener_fd);
	return serve_epoll(crew, number, listener_fd);
}

/* What a new process changes before it is a worker. */
static int become_worker(struct crew *crew, pid_t parent_pid)
{
	if (prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0UL, 0UL, 0UL))
		return -errno;
	/* A parent that died before the prctl() sends no signal any more. */
	if (getppid() != parent_pid)
		return -ESRCH;
	close_early(&crew->reservation_fd);
	close_early(&crew->report_fd);
	return sigprocmask(SIG_UNBLOCK, &crew->signals, NULL) ? -errno : 0;
}

static int start_process(struct crew *crew, unsigned int number)
{
	pid_t parent_pid = getpid();
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (!pid) {
		/* The parent's own clean-up must not run here, so the child ends on the spot. */
		if (!become_worker(crew, parent_pid))
			worker_run(crew, number);
		_exit(EXIT_FAILURE);
	}
	crew->pids[number] = pid;
	crew->nr_alive++;
	return 0;
}

/* A thread that cannot go on ends the server: the others would hide that it is gone. */
static void *thread_main(void *argument)
{
	struct post *post = argument;

	worker_run(post->crew, post->number);
	free(post);
	kill(getpid(), SIGTERM);
	return NULL;
}

static int start_thread(struct crew *crew, unsigned int number)
{
	struct post *post = malloc(sizeof(*post));
	pthread_t thread;
	int err;

	if (!post)
		return -ENOMEM;
	*post = (struct post){ .crew = crew, .number = number };
	err = pthread_create(&thread, NULL, thread_main, post);
	if (err) {
		free(post);
		return -err;
	}
	pthread_detach(thread);
	crew->pids[number] = getpid();
	crew->nr_alive++;
	return 0;
}

/* Ends early when a worker reports failure, or when all that did not report are dead. */
static int await_reports(struct crew *crew)
{
	for (unsigned int nr = 0; nr < crew->nr_alive; nr++) {
		char report = 'n';
		ssize_t length;

		do {
			length = read(crew->report_fd, &report, 1);
		} while (length < 0 && errno == EINTR);
		if (length != 1 || report != 'y')
			return -ECHILD;
	}
	return 0;
}

static int start_workers(struct crew *crew)
{
	int err = 0;

	for (unsigned int number = 0; number < crew->options->nr_workers && !err; number++)
		err = crew->options->has_threads ? start_thread(crew, number) :
						   start_process(crew, number);
	return err;
}

int crew_start(struct crew *crew)
{
	int ends[2];
	int err;

	if (sigprocmask(SIG_BLOCK, &crew->signals, NULL) || pipe2(ends, O_CLOEXEC))
		return -errno;
	crew->report_fd = ends[0];
	crew->ready_fd = ends[1];
	err = start_workers(crew);
	if (!crew->options->has_threads)
		close_early(&crew->ready_fd);
	if (!err)
		err = await_reports(crew);
	close_early(&crew->ready_fd);
	close_early(&crew->report_fd);
	close_early(&crew->reservation_fd);
	return err;
}

static void describe_end(unsigned int number, pid_t pid, int status)
{
	if (WIFSIGNALED(status))
		fprintf(stderr, "epoll-worker: worker %u (pid %d) was ended by signal %d\n", number,
			pid, WTERMSIG(status));
	else
		fprintf(stderr, "epoll-worker: worker %u (pid %d) ended\n", number, pid);
}

/*
 * A worker that gave up by itself would give up again at once, so only one that was ended by a
 * signal is started again.
 */
static void worker_ended(struct crew *crew, pid_t pid, int status)
{
	for (unsigned int number = 0; number < crew->options->nr_workers; number++) {
		if (crew->pids[number] != pid)
			continue;
		crew->pids[number] = 0;
		crew->nr_alive--;
		describe_end(number, pid, status);
		if (!crew->options->has_respawn || !WIFSIGNALED(status))
			return;
		int err = start_process(crew, number);

		if (err)
			worker_failed(number, "be started again", err);
		return;
	}
}

int crew_wait(struct crew *crew)
{
	while (crew->nr_alive) {
		int signal_number = sigwaitinfo(&crew->signals, NULL);
		int status;
		pid_t pid;

		if (signal_number == SIGTERM || signal_number == SIGINT)
			return 0;
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			worker_ended(crew, pid, status);
	}
	return -ECHILD;
}

void crew_done(struct crew *crew)
{
	if (!crew->options->has_threads) {
		for (unsigned int number = 0; number < crew->options->nr_workers; number++) {
			if (!crew->pids[number])
				continue;
			kill(crew->pids[number], SIGTERM);
			/* A stopped process receives its SIGTERM only when it continues. */
			kill(crew->pids[number], SIGCONT);
		}
		while (waitpid(-1, NULL, 0) > 0)
			;
	}
	close_early(&crew->shared_fd);
	close_early(&crew->reservation_fd);
}
