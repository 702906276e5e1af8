/* SPDX-License-Identifier: GPL-2.0-only */
#include "tally.h"

#include <errno.h>
#include <stdlib.h>

/* Open addressing: numbers are small and dense, so nearly every worker is at its own place. */
void tally_answer(struct tally *tally, unsigned int number, int pid)
{
	tally->nr_ok++;
	for (unsigned int probe = 0; probe < TALLY_WORKERS_MAX; probe++) {
		struct tally_worker *worker = &tally->workers[(number + probe) % TALLY_WORKERS_MAX];

		if (!worker->pid) {
			worker->pid = pid;
			worker->number = number;
		}
		if (worker->pid == pid && worker->number == number) {
			worker->nr_answers++;
			return;
		}
	}
}

enum tally_outcome tally_outcome_of(int err)
{
	switch (err) {
	case 0:
		return TALLY_OK;
	case -ECONNREFUSED:
		return TALLY_REFUSED;
	case -ECONNRESET:
	case -EPIPE:
		return TALLY_RESET;
	case -ETIMEDOUT:
		return TALLY_TIMEOUT;
	default:
		return TALLY_OTHER;
	}
}

void tally_error(struct tally *tally, int err)
{
	switch (tally_outcome_of(err)) {
	case TALLY_REFUSED:
		tally->nr_refused++;
		break;
	case TALLY_RESET:
		tally->nr_reset++;
		break;
	case TALLY_TIMEOUT:
		tally->nr_timeouts++;
		break;
	default:
		tally->nr_other++;
		break;
	}
}

size_t tally_nr_errors(const struct tally *tally)
{
	return tally->nr_refused + tally->nr_reset + tally->nr_timeouts + tally->nr_other;
}

static int compare_workers(const void *left, const void *right)
{
	const struct tally_worker *a = left;
	const struct tally_worker *b = right;

	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

size_t tally_sort_workers(struct tally *tally)
{
	size_t nr = 0;

	for (size_t i = 0; i < TALLY_WORKERS_MAX; i++) {
		if (tally->workers[i].pid)
			tally->workers[nr++] = tally->workers[i];
	}
	qsort(tally->workers, nr, sizeof(tally->workers[0]), compare_workers);
	return nr;
}
