/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Settings that somebody chose, by the keys of setting.h: a value for some of them, and nothing said
 * about the others. Where several have a say, the first fills in its own and the next what is left
 * open. Pure.
 */
#ifndef SOCKSTEER_STEERING_CHOICE_H
#define SOCKSTEER_STEERING_CHOICE_H

#include "steering/setting.h"
#include <stdbool.h>

/* At least as many as setting.h has keys. */
#define MAX_CHOICES 32

struct choice {
	/* In the order of settings_keys, each as its print() writes it; "" is left open. */
	char values[MAX_CHOICES][SETTING_TEXT_SIZE];
};

/* Fails as setting_apply() does, with *choice untouched. */
int choice_set(struct choice *choice, const char *name, const char *value, struct failure *failure);

/* False for what is no setting too. */
bool choice_has(const struct choice *choice, const char *name);

/* Takes from other what choice leaves open. */
void choice_fill(struct choice *choice, const struct choice *other);

/* Writes what was chosen, and nothing else. */
void choice_apply(const struct choice *choice, struct settings *settings);

#endif
