/* SPDX-License-Identifier: GPL-2.0-only */
#include "daemon/remarks.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Things that may be remarked upon; what comes after is not logged, rather than growing for ever. */
#define MAX_REMARKS 4096

struct remark {
	char about[128];
	char text[512];
};

void remarks_done(struct remarks *remarks)
{
	free(remarks->items);
	*remarks = (struct remarks){};
}

static struct remark *find(struct remarks *remarks, const char *about, bool make)
{
	struct remark *larger;
	size_t i;

	for (i = 0; i < remarks->nr; i++)
		if (!strncmp(remarks->items[i].about, about, sizeof(larger->about) - 1))
			return &remarks->items[i];
	if (!make || remarks->nr == MAX_REMARKS)
		return NULL;
	larger = reallocarray(remarks->items, remarks->nr + 1, sizeof(*larger));
	if (!larger)
		return NULL;
	remarks->items = larger;
	larger[remarks->nr] = (struct remark){};
	snprintf(larger[remarks->nr].about, sizeof(larger->about), "%s", about);
	return &larger[remarks->nr++];
}

void remark(struct remarks *remarks, const char *about, enum log_priority priority,
	    const char *text)
{
	struct remark *last = find(remarks, about, text[0] != '\0');

	if (!last || !strncmp(last->text, text, sizeof(last->text) - 1))
		return;
	snprintf(last->text, sizeof(last->text), "%s", text);
	if (text[0])
		log_line(priority, "%s", text);
}
