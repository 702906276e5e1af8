/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which network namespace the user means: an inode number, or a file that stands for one. The file
 * is opened only for a look; a namespace that ends and comes back has another number.
 */
#ifndef SOCKSTEER_STEERING_NETNS_H
#define SOCKSTEER_STEERING_NETNS_H

#include "base/failure.h"
#include <stdint.h>

/*
 * label is what the user calls it, "--netns" or "netns", and begins the message. EXIT_USAGE with
 * -EINVAL, and *ret_netns untouched.
 */
int netns_parse(const char *label, const char *text, uint32_t *ret_netns, struct failure *failure);

#endif
