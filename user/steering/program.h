/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Putting a program on a live group and taking it off. The program belongs to the group, so any
 * member's descriptor serves; it is copied for the moment of the call.
 */
#ifndef SOCKSTEER_STEERING_PROGRAM_H
#define SOCKSTEER_STEERING_PROGRAM_H

#include "base/failure.h"
#include "steering/inventory.h"

/* Replaces whatever is attached. -ESTALE, without a message, when all members vanished. */
int group_put_program(const struct group *group, int program_fd, struct failure *failure);

/* A group whose members all went took its program along, so that is no error. */
int group_take_program(const struct group *group, struct failure *failure);

#endif
