/* SPDX-License-Identifier: GPL-2.0-only */
#include "show/settings.h"

#include "show/json.h"
#include "steering/setting.h"

#include <string.h>

void settings_print(const struct settings *settings, FILE *out)
{
	const struct setting *setting;
	char text[SETTING_TEXT_SIZE];

	for (setting = settings_keys; setting->name; setting++) {
		setting->print(settings, text);
		fprintf(out, "%s=%s\n", setting->name, text);
	}
}

void settings_print_change(const char *group, const struct settings *before,
			   const struct settings *after, FILE *out)
{
	char old[SETTING_TEXT_SIZE], now[SETTING_TEXT_SIZE];
	const struct setting *setting;
	const char *separator = ": ";

	fputs(group, out);
	for (setting = settings_keys; setting->name; setting++) {
		setting->print(before, old);
		setting->print(after, now);
		if (!strcmp(old, now))
			continue;
		fprintf(out, "%s%s is %s from now on, it was %s", separator, setting->name, now,
			old);
		separator = "; ";
	}
	fputs(separator[0] == ':' ? ": nothing changed\n" : "\n", out);
}

json_t *json_of_settings(const struct settings *settings)
{
	const struct setting *setting;
	char text[SETTING_TEXT_SIZE];
	json_t *object = json_object();

	for (setting = settings_keys; setting->name; setting++) {
		setting->print(settings, text);
		object = json_with_text(object, setting->name, text);
	}
	return object;
}

int settings_print_json(const char *group, const struct settings *settings, FILE *out)
{
	json_t *object = json_object();

	object = json_with_text(object, "name", group);
	return json_print(json_with(object, "settings", json_of_settings(settings)), out);
}
