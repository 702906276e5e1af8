/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/worker.h"

#include "base/text.h"
#include "cli/cli.h"

#include <errno.h>
#include <string.h>

int worker_parse_named(const struct options *options, struct worker_spec *ret_worker,
		       struct failure *failure)
{
	char quoted[256];

	if (!worker_spec_parse(options->arguments[1], ret_worker))
		return 0;
	text_escape(options->arguments[1], strlen(options->arguments[1]), quoted, sizeof(quoted));
	return failure_set(failure, EXIT_USAGE, EINVAL,
			   "\"%s\" is not a worker; a worker is a slot, a pid or COMMAND:PID, such "
			   "as 0, 4211 or nginx:4211",
			   quoted);
}

int worker_change_named(const struct options *options, const struct worker_change *change,
			struct worker_report *ret_report, struct failure *failure)
{
	struct worker_spec worker;
	int err = worker_parse_named(options, &worker, failure);

	return err ? err : worker_change(&options->group, &worker, change, ret_report, failure);
}

void worker_print_others(const struct worker_report *report, const char *words)
{
	if (report->others[0])
		printf("; %s %s\n", words, report->others);
	else
		putchar('\n');
}
