/* SPDX-License-Identifier: GPL-2.0-only */
/* The version of the program, for every view that says it. A packager may set another. */
#ifndef SOCKSTEER_BASE_VERSION_H
#define SOCKSTEER_BASE_VERSION_H

#ifndef SOCKSTEER_VERSION
#define SOCKSTEER_VERSION "0.1.0"
#endif

#endif
