/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/cleanup.h"
#include "kernel/pins.h"
#include "steering/rescue.h"
#include "steering/session.h"
#include "steering/status.h"

#include <errno.h>
#include <string.h>

void worker_rescue_done(struct worker_rescue *rescue)
{
	free(rescue->listeners);
	*rescue = (struct worker_rescue){};
}

/* A rescue that was killed comes first: until then the listener that it shut is in no inventory. */
static int begin(struct session *session, struct failure *failure)
{
	int err = session_begin(session, PURPOSE_LOOK, failure);

	if (err || !rescue_finish_all())
		return err;
	session_done(session);
	*session = SESSION_NONE;
	return session_begin(session, PURPOSE_LOOK, failure);
}

static int read_view(const struct session *session, const struct pinned_group *pinned,
		     struct tables *tables, struct status_group *view, struct failure *failure)
{
	int err = tables_open(tables, failure);

	if (err && failure->code != EXIT_DONE)
		return err;
	if (!err)
		err = status_group_read(tables, pinned, &session->inventory, view);
	if (err)
		return failure_set(failure, EXIT_FAILED, -err,
				   "cannot use the maps below " PINS_PATH " of %s: %s",
				   pinned->folder, strerror(-err));
	return 0;
}

/* Each listener of the worker; the first that fails ends it, and what was moved before stands in *rescue. */
static int rescue_all(const struct session *session, const struct pinned_group *pinned,
		      const struct tables *tables, const struct status_group *view, uint32_t worker,
		      struct worker_rescue *rescue, struct failure *failure)
{
	const struct group *live = pinned_live(pinned, &session->inventory);
	size_t i;
	int err;

	rescue->listeners = calloc(view->nr_listeners + 1, sizeof(*rescue->listeners));
	if (!rescue->listeners)
		return failure_set(failure, EXIT_FAILED, ENOMEM, "out of memory");
	for (i = 0; i < view->nr_listeners; i++) {
		const struct status_listener *listener = &view->listeners[i];

		if (listener->gone || listener->worker != worker)
			continue;
		err = group_rescue(pinned, live, tables, listener->slot,
				   &rescue->listeners[rescue->nr_listeners], failure);
		if (err)
			return err;
		rescue->nr_listeners++;
	}
	return 0;
}

static int rescue_found(const struct session *session, const struct pinned_group *pinned,
			const struct worker_spec *worker, struct worker_rescue *rescue,
			struct failure *failure)
{
	struct status_group view CLEANUP(status_group_done) = {};
	struct tables tables CLEANUP(tables_done) = TABLES_NONE;
	const struct status_listener *listener;
	int err = read_view(session, pinned, &tables, &view, failure);

	if (!err)
		err = worker_spec_find(worker, &view, &listener, failure);
	if (err)
		return err;
	memcpy(rescue->group, view.name, sizeof(rescue->group));
	worker_text(&view, listener, rescue->worker);
	return rescue_all(session, pinned, &tables, &view, listener->worker, rescue, failure);
}

int worker_rescue(const struct group_spec *spec, const struct worker_spec *worker,
		  struct worker_rescue *ret_rescue, struct failure *failure)
{
	struct session session CLEANUP(session_done) = SESSION_NONE;
	struct worker_rescue rescue CLEANUP(worker_rescue_done) = {};
	const struct pinned_group *pinned = NULL;
	int err = begin(&session, failure);

	if (!err)
		err = pinned_find(&session.pinned, spec, &session.inventory, &pinned, failure);
	if (!err)
		err = rescue_found(&session, pinned, worker, &rescue, failure);
	if (err && !rescue.nr_listeners)
		return err;
	*ret_rescue = rescue;
	rescue = (struct worker_rescue){};
	return err;
}
