/* SPDX-License-Identifier: GPL-2.0-only */
#include "daemon/privileges.h"
#include "base/log.h"
#include "kernel/features.h"

#include <cap-ng.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

static int keep_only(const struct right *rights, size_t nr_rights)
{
	const capng_type_t sets = CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_BOUNDING_SET;
	size_t i;

	capng_clear(CAPNG_SELECT_ALL);
	for (i = 0; i < nr_rights; i++)
		if (capng_update(CAPNG_ADD, sets, rights[i].capability))
			return -EINVAL;
	return capng_apply(CAPNG_SELECT_ALL) ? -EPERM : 0;
}

static void log_kept(const struct right *rights, size_t nr_rights)
{
	char names[128] = "";
	size_t i, used = 0;

	for (i = 0; i < nr_rights && used < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
					 rights[i].name);
	log_line(LOG_PRIORITY_INFO, "keeps %s and no other capability", names);
}

int privileges_drop(struct failure *failure)
{
	struct right rights[RIGHTS_MAX];
	size_t nr_rights;
	int err;

	err = rights_check(PURPOSE_CHANGE, failure);
	if (!err)
		err = rights_needed(rights, &nr_rights, failure);
	if (err)
		return err;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL))
		err = -errno;
	if (!err)
		err = keep_only(rights, nr_rights);
	if (err)
		return failure_set(failure, EXIT_FAILED, -err,
				   "cannot give up the capabilities that are not needed: %s",
				   strerror(-err));
	log_kept(rights, nr_rights);
	return 0;
}

int privileges_lower(struct failure *failure)
{
	const capng_type_t sets = CAPNG_EFFECTIVE | CAPNG_PERMITTED;
	bool has[RIGHTS_MAX];
	struct right rights[RIGHTS_MAX];
	size_t i;
	int err = 0;

	rights_list(rights);
	if (capng_get_caps_process())
		err = -EPERM;
	for (i = 0; i < RIGHTS_MAX; i++)
		has[i] = !err && capng_have_capability(CAPNG_EFFECTIVE, rights[i].capability);
	capng_clear(CAPNG_SELECT_CAPS);
	for (i = 0; i < RIGHTS_MAX; i++)
		if (has[i] && capng_update(CAPNG_ADD, sets, rights[i].capability))
			err = -EINVAL;
	if (!err && capng_apply(CAPNG_SELECT_CAPS))
		err = -EPERM;
	if (err)
		return failure_set(failure, EXIT_FAILED, -err,
				   "cannot give up the capabilities that \"run\" does without: "
				   "%s; try it as an ordinary user",
				   strerror(-err));
	return 0;
}
