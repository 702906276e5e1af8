/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/cli.h"

#include "base/cleanup.h"
#include "cli/options.h"
#include "cli/worker.h"
#include "kernel/iterate.h"
#include "show/rescue.h"
#include "steering/audit.h"
#include "steering/rescue.h"

const char rescue_help[] =
	"Moves the connections that wait in a worker's queue to other workers of the group, with\n"
	"whatever their clients have sent already. It is for a worker that hangs; the daemon does\n"
	"the same by itself where the setting \"rescue\" says so.\n"
	"\n"
	"It takes a copy of the descriptor of each listener of the worker with a queue in the\n"
	"group, and calls shutdown() and then listen() on it, some 100 us in all: the kernel\n"
	"migrates the queue of a listener that shuts, and steer says where to. If the worker\n"
	"calls accept() at that moment, it gets EINVAL; one that hangs does not. The listener\n"
	"keeps its address, options, epoll registrations, slot and counters. Handshakes that are\n"
	"not finished stay with it, and so does what the worker has accepted. The counters are\n"
	"audited afterwards. A worker with nothing in its queue is not touched.\n"
	"\n"
	"It is refused where no other worker is there to take the connections. If it is killed,\n"
	"the listener listens nevertheless, at the latest after the next attach or rescue, or\n"
	"look of the daemon.\n";

const char rescue_option_help[] = "      --json          print JSON\n";

const char rescue_more[] =
	"Exit codes: 0 done; 1 failed, and the listener listens as before unless the message says\n"
	"otherwise; 2 usage, or the WORKER is not unique; 3 a right is missing; 4 the group is not\n"
	"steered, has no such worker, or no other that could take the connections.\n"
	"\n"
	"Examples:\n"
	"  socksteer rescue :8080 2\n"
	"  socksteer rescue :8080 nginx:4211 --json | jq .moved\n";

/*
 * The moved connections are charged to who accepts them. That can fail without harm to what was done: the
 * daemon's next audit makes up for it, so nothing is said.
 */
static void audit(const struct options *options)
{
	struct audit_report report CLEANUP(audit_done) = {};
	struct inspector *inspector = NULL;
	struct failure ignored = {};

	if (!inspector_new(&inspector, &ignored))
		audit_run(inspector, &options->group, REPAIR_SEEN, &report, &ignored);
	inspector_free(inspector);
}

int command_rescue(int argc, char **argv, struct failure *failure)
{
	const struct command *command = command_find("rescue");
	struct worker_rescue rescue CLEANUP(worker_rescue_done) = {};
	struct worker_spec worker;
	struct options options;
	int err, print_err;

	err = options_parse(command, argc, argv, &options, failure);
	if (err)
		return err;
	if (options.help) {
		help_print_command(command, stdout);
		return 0;
	}
	err = worker_parse_named(&options, &worker, failure);
	if (!err)
		err = worker_rescue(&options.group, &worker, &rescue, failure);
	/* What was moved before something failed is told too. */
	if (err && !rescue.nr_listeners)
		return err;
	print_err = options.json ? rescue_print_json(&rescue, stdout) :
				   rescue_print_text(&rescue, stdout, stderr);
	if (rescue_nr_moved(&rescue))
		audit(&options);
	return err ? err : print_err;
}
