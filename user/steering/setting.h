/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What can be set for a group, by name: the keys of "set", of the configuration file, and of the views.
 * Pure; who reads and writes the settings map is the caller's business.
 */
#ifndef SOCKSTEER_STEERING_SETTING_H
#define SOCKSTEER_STEERING_SETTING_H

#include "base/failure.h"
#include "socksteer/types.h"
#include <stddef.h>

/* Room for any value as text. */
#define SETTING_TEXT_SIZE 32

struct setting {
	const char *name;
	const char *value; /* what it takes, for help: "DURATION" */
	const char *text; /* one line of help */
	/* 0, or -EINVAL with *ret_settings untouched. */
	int (*parse)(const char *text, struct settings *ret_settings);
	/* The value as parse takes it. ret_text holds SETTING_TEXT_SIZE bytes. */
	void (*print)(const struct settings *settings, char *ret_text);
};

/* In the order of the help; the last one has no name. */
extern const struct setting settings_keys[];

/* NULL without a setting of that name. */
const struct setting *setting_find(const char *name);

/*
 * Sets one key. EXIT_USAGE with -EINVAL and a message that lists the keys, or says what this key
 * takes; *settings is untouched then.
 */
int setting_apply(struct settings *settings, const char *name, const char *value,
		  struct failure *failure);

#endif
