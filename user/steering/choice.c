/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/choice.h"

#include <errno.h>
#include <string.h>

int choice_set(struct choice *choice, const char *name, const char *value, struct failure *failure)
{
	struct settings settings = {};
	const struct setting *setting;
	int err = setting_apply(&settings, name, value, failure);

	if (err)
		return err;
	setting = setting_find(name);
	setting->print(&settings, choice->values[setting - settings_keys]);
	return 0;
}

bool choice_has(const struct choice *choice, const char *name)
{
	const struct setting *setting = setting_find(name);

	return setting && choice->values[setting - settings_keys][0];
}

void choice_fill(struct choice *choice, const struct choice *other)
{
	size_t i;

	for (i = 0; i < MAX_CHOICES; i++)
		if (!choice->values[i][0])
			memcpy(choice->values[i], other->values[i], SETTING_TEXT_SIZE);
}

void choice_apply(const struct choice *choice, struct settings *settings)
{
	size_t i;

	for (i = 0; settings_keys[i].name; i++)
		if (choice->values[i][0])
			settings_keys[i].parse(choice->values[i], settings);
}
