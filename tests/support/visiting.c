/* SPDX-License-Identifier: GPL-2.0-only */
#include "support/visiting.h"
#include "support/waiting.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <string.h>

/* Runs in a thread of its own, where nothing may be asserted. */
static void *visitor_run(void *argument)
{
	struct visitor *visitor = argument;

	while (!visitor->err && !atomic_load(&visitor->visiting->stop)) {
		visitor->err = client_visit(visitor->visiting->to, END_WORKER_FIRST);
		atomic_fetch_add(&visitor->nr_visits, !visitor->err);
	}
	return NULL;
}

void visiting_start(struct visiting *visiting, const struct endpoint *to)
{
	size_t i;

	*visiting = (struct visiting){ .to = to };
	for (i = 0; i < VISITORS; i++) {
		visiting->visitors[i].visiting = visiting;
		cr_assert_eq(pthread_create(&visiting->visitors[i].thread, NULL, visitor_run,
					    &visiting->visitors[i]),
			     0);
	}
}

void visiting_stop(struct visiting *visiting)
{
	size_t i;

	atomic_store(&visiting->stop, true);
	for (i = 0; i < VISITORS; i++) {
		pthread_join(visiting->visitors[i].thread, NULL);
		cr_expect_eq(visiting->visitors[i].err, 0, "visitor %zu: %s", i,
			     strerror(-visiting->visitors[i].err));
	}
}

struct visits_wait {
	struct visiting *visiting;
	size_t goals[VISITORS];
};

static bool are_reached(void *argument)
{
	struct visits_wait *wait = argument;
	size_t i;

	for (i = 0; i < VISITORS; i++)
		if (atomic_load(&wait->visiting->visitors[i].nr_visits) < wait->goals[i])
			return false;
	return true;
}

void visiting_await(struct visiting *visiting, size_t nr_visits)
{
	struct visits_wait wait = { .visiting = visiting };
	size_t i;

	for (i = 0; i < VISITORS; i++)
		wait.goals[i] = atomic_load(&visiting->visitors[i].nr_visits) + nr_visits;
	cr_assert(wait_until(are_reached, &wait, DEADLINE_MS), "the visitors stand still");
}
