/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SOCKSTEER_CLI_STATUS_H
#define SOCKSTEER_CLI_STATUS_H

#include "cli/options.h"

/* status --watch: looks and prints until a signal ends it, which is no failure. */
int status_watch(const struct options *options, struct failure *failure);

#endif
