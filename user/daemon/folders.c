/* SPDX-License-Identifier: GPL-2.0-only */
#include "daemon/folders.h"

#include <stdlib.h>
#include <string.h>

void folders_done(struct folders *folders)
{
	size_t i;

	for (i = 0; i < folders->nr; i++)
		free(folders->names[i]);
	free(folders->names);
	*folders = (struct folders){};
}

bool folders_has(const struct folders *folders, const char *name)
{
	size_t i;

	for (i = 0; i < folders->nr; i++)
		if (!strcmp(folders->names[i], name))
			return true;
	return false;
}

void folders_remove(struct folders *folders, const char *name)
{
	size_t i;

	for (i = 0; i < folders->nr; i++) {
		if (strcmp(folders->names[i], name))
			continue;
		free(folders->names[i]);
		folders->names[i] = folders->names[--folders->nr];
		return;
	}
}

void folders_add(struct folders *folders, const char *name)
{
	char **larger, *copy;

	if (folders_has(folders, name))
		return;
	larger = reallocarray(folders->names, folders->nr + 1, sizeof(*larger));
	if (!larger)
		return;
	folders->names = larger;
	copy = strdup(name);
	if (copy)
		larger[folders->nr++] = copy;
}
