/* SPDX-License-Identifier: GPL-2.0-only */
#include "daemon/absences.h"

#include <stdlib.h>
#include <string.h>

struct absence {
	char *folder; /* owned */
	uint64_t since_ns;
	bool noted; /* in this look */
};

void absences_done(struct absences *absences)
{
	absences_begin(absences);
	absences_end(absences);
	free(absences->items);
	*absences = (struct absences){};
}

void absences_begin(struct absences *absences)
{
	size_t i;

	for (i = 0; i < absences->nr; i++)
		absences->items[i].noted = false;
}

void absences_end(struct absences *absences)
{
	size_t i, nr_kept = 0;

	for (i = 0; i < absences->nr; i++) {
		if (absences->items[i].noted)
			absences->items[nr_kept++] = absences->items[i];
		else
			free(absences->items[i].folder);
	}
	absences->nr = nr_kept;
}

static struct absence *find(const struct absences *absences, const char *folder)
{
	size_t i;

	for (i = 0; i < absences->nr; i++)
		if (!strcmp(absences->items[i].folder, folder))
			return &absences->items[i];
	return NULL;
}

static struct absence *add(struct absences *absences, const char *folder, uint64_t now_ns)
{
	struct absence *larger = reallocarray(absences->items, absences->nr + 1, sizeof(*larger));
	char *copy;

	if (!larger)
		return NULL;
	absences->items = larger;
	copy = strdup(folder);
	if (!copy)
		return NULL;
	larger[absences->nr] = (struct absence){ .folder = copy, .since_ns = now_ns };
	return &larger[absences->nr++];
}

uint64_t absences_note(struct absences *absences, const char *folder, uint64_t now_ns)
{
	struct absence *absence = find(absences, folder);

	if (!absence)
		absence = add(absences, folder, now_ns);
	if (!absence)
		return 0;
	absence->noted = true;
	return now_ns - absence->since_ns;
}

void absences_restart(struct absences *absences, const char *folder, uint64_t now_ns)
{
	struct absence *absence = find(absences, folder);

	if (absence)
		absence->since_ns = now_ns;
}

bool absences_reach(const struct absences *absences, uint64_t now_ns, uint64_t longest_ns)
{
	size_t i;

	for (i = 0; i < absences->nr; i++)
		if (now_ns - absences->items[i].since_ns >= longest_ns)
			return true;
	return false;
}
