/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Listeners that come and go without end, which any local user can do to a kept port: what the daemon
 * spends on them, and that those which stay are steered nevertheless.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "support/daemon.h"
#include "support/plain_group.h"
#include "support/program.h"
#include "support/sandbox.h"
#include "support/scene.h"
#include "support/steered.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

TestSuite(churn, .init = scene_enter, .timeout = TEST_SECONDS);

/* Opened, closed and rested for: about 600 listeners in a second. */
#define OPEN_NS 500000
#define REST_NS 1000000

/* For how long the processor time is taken, and how much of that the daemon may have. */
#define MEASURED_NS 3000000000ULL
#define MOST_PERMILLE 200

/*
 * Where one list takes this much processor time, as on an emulated machine, a single look takes more
 * than the share, and only the longest wait bounds it.
 */
#define SLOW_NS 1000000000ULL

struct churner {
	struct endpoint endpoint;
	pthread_t thread;
	atomic_bool stop;
};

static void rest(long duration_ns)
{
	const struct timespec duration = { .tv_nsec = duration_ns };

	nanosleep(&duration, NULL);
}

static void *churn_on(void *argument)
{
	struct churner *churner = argument;

	while (!atomic_load(&churner->stop)) {
		struct plain_group group;

		plain_group_init(&group, "127.0.0.1", "0");
		group.endpoint = churner->endpoint;
		plain_group_add(&group, PLAIN_BACKLOG);
		rest(OPEN_NS);
		plain_group_done(&group);
		rest(REST_NS);
	}
	return NULL;
}

static void churner_start(struct churner *churner, const struct endpoint *endpoint)
{
	churner->endpoint = *endpoint;
	atomic_init(&churner->stop, false);
	cr_assert_eq(pthread_create(&churner->thread, NULL, churn_on, churner), 0);
}

static void churner_stop(struct churner *churner)
{
	atomic_store(&churner->stop, true);
	pthread_join(churner->thread, NULL);
}

static uint64_t time_taken_ns(pid_t pid)
{
	struct timespec taken;
	clockid_t clock;

	cr_assert_eq(clock_getcpuclockid(pid, &clock), 0);
	cr_assert_eq(clock_gettime(clock, &taken), 0);
	return (uint64_t)taken.tv_sec * 1000000000 + (uint64_t)taken.tv_nsec;
}

static uint64_t children_taken_ns(void)
{
	struct rusage usage;

	cr_assert_eq(getrusage(RUSAGE_CHILDREN, &usage), 0);
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

static bool machine_is_slow(void)
{
	uint64_t before_ns = children_taken_ns();

	program_succeeds("list");
	return children_taken_ns() - before_ns > SLOW_NS;
}

static bool is_over(void *argument)
{
	const uint64_t *end_ns = argument;

	return clock_now_ns() >= *end_ns;
}

/* The share of one CPU that a process takes from now on. */
static uint64_t share_permille(pid_t pid)
{
	uint64_t start_ns = clock_now_ns(), end_ns = start_ns + MEASURED_NS;
	uint64_t before_ns = time_taken_ns(pid);

	cr_assert(wait_until(is_over, &end_ns, DEADLINE_MS));
	return (time_taken_ns(pid) - before_ns) * 1000 / (clock_now_ns() - start_ns);
}

struct slot_wait {
	const struct scene *scene;
	pid_t pid;
};

static bool has_slot(void *argument)
{
	const struct slot_wait *wait = argument;
	struct status status CLEANUP(status_done) = {};
	struct failure failure = {};
	char text[ENDPOINT_TEXT_BYTES];
	struct group_spec spec;
	size_t i;

	spec_of_endpoint(&wait->scene->servers.endpoint, text, &spec);
	if (status_read(&spec, &status, &failure) || !status.groups[0].steered)
		return false;
	for (i = 0; i < status.groups[0].nr_listeners; i++)
		if (status.groups[0].listeners[i].pid == (uint32_t)wait->pid &&
		    !status.groups[0].listeners[i].gone)
			return true;
	return false;
}

Test(churn, churn_without_end_is_bounded_and_named_once_and_who_stays_is_steered)
{
	struct said said CLEANUP(said_done) = {};
	struct servers joined;
	struct churner churner;
	struct slot_wait wait;
	struct program daemon;
	const char *again;
	struct scene scene;
	char named[96];
	bool is_slow;

	scene_start(&scene, "--workers", "2");
	is_slow = machine_is_slow();
	daemon_start(&daemon, NULL, &scene, NULL);
	await_steered_listeners(&scene, 2);
	churner_start(&churner, &scene.servers.endpoint);
	snprintf(named, sizeof(named), "listeners on port %s ", scene.port + 1);
	daemon_await_said(&daemon, named);
	if (!is_slow) {
		uint64_t permille = share_permille(daemon.pid);

		cr_expect_leq(permille, MOST_PERMILLE, "the daemon takes %lu permille of a CPU",
			      permille);
	}
	servers_start(&joined, "--workers", "1", "--port", scene.port + 1);
	wait = (struct slot_wait){ &scene, joined.pids[0] };
	cr_expect(wait_until(has_slot, &wait, DEADLINE_MS), "who stays is never steered");
	churner_stop(&churner);
	await_steered_listeners(&scene, 3);
	daemon_stop(&daemon, &said);
	again = strstr(said.error, named);
	cr_assert(again);
	cr_expect_null(strstr(again + 1, named), "it is said twice: %s", said.error);
}
