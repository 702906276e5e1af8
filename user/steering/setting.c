/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/setting.h"
#include "base/text.h"
#include "socksteer/policy.h"
#include "steering/names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_SLOW_START_NS 600000000000

/* Below, a healthy event loop would now and then be called stuck; above, nobody would wait for it. */
#define MIN_STUCK_AFTER_NS 10000000
#define MAX_STUCK_AFTER_NS 60000000000

/* A busy worker may weigh as much as this many connections; more would never choose it. */
#define MAX_BUSY_PENALTY 100

static int policy_parse(const char *text, struct settings *ret_settings)
{
	enum policy policy;
	int err = policy_of_name(text, &policy);

	if (!err)
		ret_settings->policy = policy;
	return err;
}

static void policy_print(const struct settings *settings, char *ret_text)
{
	snprintf(ret_text, SETTING_TEXT_SIZE, "%s", policy_name(settings->policy));
}

static int slow_start_parse(const char *text, struct settings *ret_settings)
{
	uint64_t ns;

	if (text_to_duration(text, &ns) || ns > MAX_SLOW_START_NS)
		return -EINVAL;
	ret_settings->slow_start_ns = ns;
	return 0;
}

static void slow_start_print(const struct settings *settings, char *ret_text)
{
	text_of_duration(settings->slow_start_ns, ret_text, SETTING_TEXT_SIZE);
}

static int stuck_after_parse(const char *text, struct settings *ret_settings)
{
	uint64_t ns;

	if (text_to_duration(text, &ns) || ns < MIN_STUCK_AFTER_NS || ns > MAX_STUCK_AFTER_NS)
		return -EINVAL;
	ret_settings->stuck_after_ns = ns;
	return 0;
}

static void stuck_after_print(const struct settings *settings, char *ret_text)
{
	text_of_duration(settings->stuck_after_ns, ret_text, SETTING_TEXT_SIZE);
}

static const char *const rescue_names[NR_RESCUE_MODES] = {
	[RESCUE_OFF] = "off",
	[RESCUE_STUCK] = "stuck",
	[RESCUE_STUCK_UNATTENDED] = "stuck+unattended",
};

static int rescue_parse(const char *text, struct settings *ret_settings)
{
	uint32_t mode;

	for (mode = 0; mode < NR_RESCUE_MODES; mode++) {
		if (strcmp(text, rescue_names[mode]))
			continue;
		ret_settings->rescue = mode;
		return 0;
	}
	return -EINVAL;
}

static void rescue_print(const struct settings *settings, char *ret_text)
{
	snprintf(ret_text, SETTING_TEXT_SIZE, "%s",
		 settings->rescue < NR_RESCUE_MODES ? rescue_names[settings->rescue] : "unknown");
}

/* A number of connections with up to two decimals. */
static int busy_penalty_parse(const char *text, struct settings *ret_settings)
{
	uint64_t whole, hundredths = 0;
	const char *dot = strchr(text, '.');
	char number[24];

	snprintf(number, sizeof(number), "%.*s", dot ? (int)(dot - text) : 20, text);
	if (text_to_u64(number, 0, MAX_BUSY_PENALTY, &whole))
		return -EINVAL;
	if (dot && (strlen(dot + 1) > 2 || text_to_u64(dot + 1, 0, 99, &hundredths)))
		return -EINVAL;
	if (dot && strlen(dot + 1) == 1)
		hundredths *= 10;
	ret_settings->busy_penalty =
		(uint32_t)(whole * LOAD_UNIT + (hundredths * LOAD_UNIT + 50) / 100);
	return 0;
}

static void busy_penalty_print(const struct settings *settings, char *ret_text)
{
	uint32_t hundredths = (settings->busy_penalty * 100 + LOAD_UNIT / 2) / LOAD_UNIT;

	snprintf(ret_text, SETTING_TEXT_SIZE, "%u.%02u", hundredths / 100, hundredths % 100);
}

const struct setting settings_keys[] = {
	{ "policy", "NAME", "how a listener is chosen", policy_parse, policy_print },
	{ "slow-start", "DURATION",
	  "a listener that joins reaches its full share after this: 0 to 10m", slow_start_parse,
	  slow_start_print },
	{ "busy-penalty", "CONNECTIONS",
	  "what a worker weighs more while its event loop runs a handler: 0 to 100, such as 0.5",
	  busy_penalty_parse, busy_penalty_print },
	{ "stuck-after", "DURATION",
	  "a queue whose first connection is not accepted for this is stuck, and avoided: 10ms to 60s",
	  stuck_after_parse, stuck_after_print },
	{ "rescue", "MODE",
	  "whose queue the daemon moves to other workers: off, stuck, or stuck+unattended",
	  rescue_parse, rescue_print },
	{},
};

const struct setting *setting_find(const char *name)
{
	const struct setting *setting;

	for (setting = settings_keys; setting->name; setting++)
		if (!strcmp(setting->name, name))
			return setting;
	return NULL;
}

static void list_keys(char *text, size_t size)
{
	const struct setting *setting;
	size_t used = 0;

	text[0] = '\0';
	for (setting = settings_keys; setting->name && used < size; setting++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
					 setting->name);
}

int setting_apply(struct settings *settings, const char *name, const char *value,
		  struct failure *failure)
{
	const struct setting *setting = setting_find(name);
	char shown[64], keys[256];

	if (!setting) {
		text_escape(name, strlen(name), shown, sizeof(shown));
		list_keys(keys, sizeof(keys));
		return failure_set(failure, EXIT_USAGE, EINVAL,
				   "there is no setting \"%s\"; there are %s", shown, keys);
	}
	if (!setting->parse(value, settings))
		return 0;
	text_escape(value, strlen(value), shown, sizeof(shown));
	return failure_set(failure, EXIT_USAGE, EINVAL, "\"%s\" is no value for %s (%s): %s", shown,
			   setting->name, setting->value, setting->text);
}
