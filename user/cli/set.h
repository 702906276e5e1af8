/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SOCKSTEER_CLI_SET_H
#define SOCKSTEER_CLI_SET_H

/* KEY=VALUE pairs that one command line can give. */
#define MAX_SET_PAIRS 16

#endif
