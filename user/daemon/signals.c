/* SPDX-License-Identifier: GPL-2.0-only */
#include "daemon/signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

static const int signals[] = { SIGTERM, SIGINT, SIGHUP };

#define NR_SIGNALS (sizeof(signals) / sizeof(signals[0]))

int signals_block(void)
{
	sigset_t mask;
	size_t i;

	sigemptyset(&mask);
	for (i = 0; i < NR_SIGNALS; i++)
		sigaddset(&mask, signals[i]);
	return sigprocmask(SIG_BLOCK, &mask, NULL) ? -errno : 0;
}

int signals_add(sd_event *loop, sd_event_signal_handler_t handler, void *argument)
{
	size_t i;
	int err = 0;

	for (i = 0; i < NR_SIGNALS && err >= 0; i++)
		err = sd_event_add_signal(loop, NULL, signals[i], handler, argument);
	return err < 0 ? err : 0;
}
