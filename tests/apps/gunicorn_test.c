/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * gunicorn with reuse_port: the parent opens one listener before it forks, so that all workers wait
 * at the same one, whatever the option's name promises.
 */
#include "base/cleanup.h"
#include "support/foreign.h"
#include "support/program.h"
#include "support/sandbox.h"

#include <criterion/criterion.h>

TestSuite(gunicorn, .init = foreign_enter, .fini = foreign_leave, .timeout = TEST_SECONDS);

static const char application[] =
	"import os\n"
	"\n"
	"def application(environ, start_response):\n"
	"    answer = b'worker 0 pid %d\\n' % os.getpid()\n"
	"    start_response('200 OK', [('Content-Length', str(len(answer)))])\n"
	"    return [answer]\n";

Test(gunicorn, one_listener_of_many_processes_is_nothing_to_steer)
{
	struct said said CLEANUP(said_done) = {};
	char netns[NUMBER_BYTES];

	foreign_write("application.py", application);
	foreign_start("gunicorn", "--reuse-port", "--workers", "3", "--bind", FOREIGN_GROUP,
		      "application:application");
	foreign_await(1, 1, 4);
	network_format(netns);
	program_run(&said, "attach", FOREIGN_GROUP, "--netns", netns);
	expect_refused(&said, "gunicorn", EXIT_NOTHING,
		       "one listener, 4 processes: nothing to steer");
	expect_untouched(&foreign_get()->endpoint, "gunicorn");
}
