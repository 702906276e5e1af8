/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SOCKSTEER_CLI_RUN_H
#define SOCKSTEER_CLI_RUN_H

/* Groups that one command line can name. */
#define MAX_RUN_GROUPS 64

#endif
