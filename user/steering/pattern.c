/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/pattern.h"
#include "base/text.h"
#include "steering/place.h"

#include <errno.h>
#include <fnmatch.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

static const char *const key_names[NR_PATTERN_KEYS] = {
	[PATTERN_ADDRESS] = "address",
	[PATTERN_COMMAND] = "command",
	[PATTERN_USER] = "user",
};

const char *pattern_key_name(enum pattern_key key)
{
	return key < NR_PATTERN_KEYS ? key_names[key] : NULL;
}

bool pattern_key_find(const char *name, enum pattern_key *ret_key)
{
	size_t i;

	for (i = 0; i < NR_PATTERN_KEYS; i++) {
		if (strcmp(key_names[i], name))
			continue;
		*ret_key = (enum pattern_key)i;
		return true;
	}
	return false;
}

/* In an address a bracket is a bracket, so that "[::1]:*" means what it seems to. */
static void write_glob(struct pattern *pattern)
{
	const char *from = pattern->text;
	char *to = pattern->glob;

	for (; *from; from++) {
		if (pattern->key == PATTERN_ADDRESS && strchr("[]\\", *from))
			*to++ = '\\';
		*to++ = *from;
	}
	*to = '\0';
}

/* A number is taken as it is, also one that no user has here. */
static int find_user(struct pattern *pattern, struct failure *failure)
{
	char quoted[PATTERN_SIZE];
	const struct passwd *user;
	uint64_t uid;

	if (!text_to_u64(pattern->text, 0, UINT32_MAX - 1, &uid)) {
		pattern->uid = (uint32_t)uid;
		return 0;
	}
	user = getpwnam(pattern->text);
	if (user) {
		pattern->uid = user->pw_uid;
		return 0;
	}
	text_escape(pattern->text, strlen(pattern->text), quoted, sizeof(quoted));
	return failure_set(failure, EXIT_USAGE, EINVAL,
			   "there is no user \"%s\"; user takes a name or a number", quoted);
}

int patterns_add(struct patterns *patterns, enum pattern_key key, const char *value,
		 struct failure *failure)
{
	struct pattern *pattern = &patterns->items[patterns->nr];
	size_t length = strlen(value);
	int err = 0;

	if (patterns->nr == MAX_PATTERNS)
		return failure_set(failure, EXIT_USAGE, EINVAL, "more than %d patterns",
				   MAX_PATTERNS);
	if (!length || length >= PATTERN_SIZE)
		return failure_set(failure, EXIT_USAGE, EINVAL,
				   "%s takes a pattern of 1 to %d characters", key_names[key],
				   PATTERN_SIZE - 1);
	*pattern = (struct pattern){ .key = key };
	memcpy(pattern->text, value, length + 1);
	if (key == PATTERN_USER)
		err = find_user(pattern, failure);
	else
		write_glob(pattern);
	if (!err)
		patterns->nr++;
	return err;
}

int patterns_parse(struct patterns *patterns, const char *text, struct failure *failure)
{
	const char *equals = strchr(text, '=');
	char name[16], quoted[PATTERN_SIZE];
	enum pattern_key key;

	if (equals) {
		snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
		if (pattern_key_find(name, &key))
			return patterns_add(patterns, key, equals + 1, failure);
	}
	text_escape(text, strlen(text), quoted, sizeof(quoted));
	return failure_set(failure, EXIT_USAGE, EINVAL,
			   "\"%s\" is no pattern; a pattern is address=GLOB, command=GLOB or "
			   "user=NAME|UID, such as 'address=*:80'",
			   quoted);
}

bool patterns_have(const struct patterns *patterns, enum pattern_key key)
{
	size_t i;

	for (i = 0; i < patterns->nr; i++)
		if (patterns->items[i].key == key)
			return true;
	return false;
}

static bool address_matches(const struct pattern *pattern, const struct group *group)
{
	char name[ADDRESS_TEXT_SIZE];

	group_name(group, name);
	return !fnmatch(pattern->glob, name, 0);
}

static bool command_matches(const struct pattern *pattern, const struct group *group)
{
	char comm[COMM_SIZE + 1] = "";
	size_t i;

	for (i = 0; i < group->nr_listeners; i++) {
		memcpy(comm, group->listeners[i].comm, COMM_SIZE);
		if (!fnmatch(pattern->glob, comm, 0))
			return true;
	}
	return false;
}

static bool pattern_matches(const struct pattern *pattern, const struct group *group)
{
	if (pattern->key == PATTERN_ADDRESS)
		return address_matches(pattern, group);
	if (!group->nr_listeners)
		return true;
	if (pattern->key == PATTERN_COMMAND)
		return command_matches(pattern, group);
	return pattern->uid == group->uid;
}

bool patterns_match(const struct patterns *patterns, const struct group *group)
{
	size_t i;

	for (i = 0; i < patterns->nr; i++)
		if (!pattern_matches(&patterns->items[i], group))
			return false;
	return true;
}
