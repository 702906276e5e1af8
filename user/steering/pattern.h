/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which groups of the machine are meant, by what they have in common: "--match KEY=GLOB" and the
 * [all] section. Pure but for the look at the list of users.
 */
#ifndef SOCKSTEER_STEERING_PATTERN_H
#define SOCKSTEER_STEERING_PATTERN_H

#include "base/failure.h"
#include "steering/inventory.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More keys than there are can be given on a command line: two globs for the address, say. */
#define MAX_PATTERNS 16

#define PATTERN_SIZE 128

enum pattern_key {
	/* A glob for the group's address and port; brackets in it are those of IPv6. */
	PATTERN_ADDRESS,
	/* A glob for the name of one of its workers, whatever bytes that holds. */
	PATTERN_COMMAND,
	/* Whose sockets they are, by name or number. */
	PATTERN_USER,
	NR_PATTERN_KEYS,
};

struct pattern {
	enum pattern_key key;
	char glob[2 * PATTERN_SIZE]; /* as fnmatch() takes it; "" for a user */
	uint32_t uid;
	char text[PATTERN_SIZE]; /* as the user wrote it */
};

/* All of them must match; none match every group. */
struct patterns {
	struct pattern items[MAX_PATTERNS];
	size_t nr;
};

/* NULL for NR_PATTERN_KEYS and above. */
const char *pattern_key_name(enum pattern_key key);

/* True if it is the name of a key. */
bool pattern_key_find(const char *name, enum pattern_key *ret_key);

/* Adds one; EXIT_USAGE with -EINVAL when the value is none, or when there are too many. */
int patterns_add(struct patterns *patterns, enum pattern_key key, const char *value,
		 struct failure *failure);

/* The same from "KEY=GLOB", as --match takes it. */
int patterns_parse(struct patterns *patterns, const char *text, struct failure *failure);

bool patterns_have(const struct patterns *patterns, enum pattern_key key);

/*
 * Of a group without listeners nothing but the address is known: one that is gone and was pinned. It
 * matches by that.
 */
bool patterns_match(const struct patterns *patterns, const struct group *group);

#endif
