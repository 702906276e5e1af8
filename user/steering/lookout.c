/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/lookout.h"
#include "base/cleanup.h"
#include "kernel/features.h"
#include "kernel/iterate.h"
#include "kernel/pins.h"

#include <errno.h>

struct lookout {
	const struct group_spec *spec; /* borrowed, may be NULL */
	struct inspector *inspector; /* owned */
	bool was_there; /* the group that spec names */
};

void lookout_free(struct lookout *lookout)
{
	if (lookout)
		inspector_free(lookout->inspector);
	free(lookout);
}

static void cleanup_lookout(struct lookout **lookout)
{
	lookout_free(*lookout);
}

int lookout_new(const struct group_spec *spec, struct lookout **ret_lookout,
		struct failure *failure)
{
	struct lookout *lookout CLEANUP(cleanup_lookout) = calloc(1, sizeof(*lookout));
	int err;

	if (!lookout)
		return failure_set(failure, EXIT_FAILED, ENOMEM, "out of memory");
	lookout->spec = spec;
	err = pins_check(failure);
	if (!err)
		err = rights_check(PURPOSE_LOOK, failure);
	if (!err)
		err = inspector_new(&lookout->inspector, failure);
	if (!err)
		*ret_lookout = TAKE_PTR(lookout);
	return err;
}

int lookout_renew(struct lookout *lookout, struct status *status, struct failure *failure)
{
	struct failure reason = {};
	struct status now = {};
	int err;

	err = status_read_with(lookout->inspector, lookout->spec, &now, &reason);
	if (err && !(reason.code == EXIT_NOTHING && lookout->was_there)) {
		*failure = reason;
		return err;
	}
	lookout->was_there = true;
	status_done(status);
	*status = now;
	return 0;
}
