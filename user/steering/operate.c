/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/operate.h"
#include "base/cleanup.h"
#include "kernel/pins.h"
#include "kernel/values.h"
#include "socksteer/policy.h"
#include "steering/names.h"
#include "steering/place.h"
#include "steering/session.h"
#include "steering/setting.h"

#include <errno.h>
#include <string.h>

static int find_group(struct session *session, const struct group_spec *spec,
		      const struct pinned_group **ret_group, struct failure *failure)
{
	int err = session_begin(session, PURPOSE_LOOK, failure);

	if (err)
		return err;
	return pinned_find(&session->pinned, spec, &session->inventory, ret_group, failure);
}

static int check_steered(const struct session *session, const struct pinned_group *pinned,
			 struct failure *failure)
{
	const struct group *live = pinned_live(pinned, &session->inventory);
	char name[ADDRESS_TEXT_SIZE];

	if (pinned->whole && live && live->ours)
		return 0;
	settings_name(&pinned->settings, name);
	return failure_set(failure, EXIT_NOTHING, ENOENT,
			   "%s is not steered at the moment, its program is no longer attached: "
			   "\"socksteer attach\" steers it again, and takes --policy",
			   name);
}

static int maps_failed(const struct pinned_group *pinned, int err, struct failure *failure)
{
	return failure_set(failure, EXIT_FAILED, -err,
			   "cannot use the maps below " PINS_PATH " of %s: %s", pinned->folder,
			   strerror(-err));
}

/* Adds the name of a group to the list if the worker has a listener in it. */
static int note_other(const struct pinned_group *other, uint32_t row, char text[OTHERS_TEXT_SIZE])
{
	struct member *members CLEANUP(cleanup_free) = calloc(MAX_SLOTS, sizeof(*members));
	size_t used = strlen(text), slot;
	char name[ADDRESS_TEXT_SIZE];
	int err;

	if (!members)
		return -ENOMEM;
	err = values_read(other->maps.members, members, sizeof(*members), MAX_SLOTS);
	if (err)
		return err;
	for (slot = 0; slot < MAX_SLOTS; slot++)
		if (members[slot].cookie && members[slot].worker == row)
			break;
	if (slot == MAX_SLOTS)
		return 0;
	settings_name(&other->settings, name);
	snprintf(text + used, OTHERS_TEXT_SIZE - used, "%s%s", used ? ", " : "", name);
	return 0;
}

static int note_others(const struct session *session, const struct pinned_group *pinned,
		       struct worker_report *report)
{
	size_t i;
	int err = 0;

	for (i = 0; i < session->pinned.nr_groups && !err; i++) {
		const struct pinned_group *other = &session->pinned.groups[i];

		if (other != pinned && other->whole)
			err = note_other(other, report->row, report->others);
	}
	return err;
}

static int write_change(const struct tables *tables, const struct worker_change *change,
			struct worker_report *report)
{
	struct worker worker;
	int err = value_read(tables->workers, report->row, &worker);

	if (err)
		return err;
	report->before = worker;
	worker.flags = (worker.flags | change->set_flags) & ~change->clear_flags;
	/* What a person says of draining is not undone at the end of a rescue. */
	if ((change->set_flags | change->clear_flags) & WORKER_DRAINING)
		worker.flags &= ~(__u32)WORKER_RESCUED;
	if (change->weight) {
		worker.weight = change->weight;
		worker.cost = policy_cost(change->weight);
	}
	report->after = worker;
	return value_write(tables->workers, report->row, &worker);
}

/* view is from before the change. */
static void note_draining(const struct status_group *view, struct worker_report *report)
{
	size_t i;

	report->all_drain = report->after.flags & WORKER_DRAINING;
	for (i = 0; i < view->nr_listeners && report->all_drain; i++) {
		const struct status_listener *listener = &view->listeners[i];

		report->all_drain = listener->gone || listener->draining ||
				    listener->worker == report->row;
	}
	report->not_avoided = view->policy == POLICY_HASH || view->nr_missing;
}

static int change_found(const struct session *session, const struct pinned_group *pinned,
			const struct worker_spec *worker, const struct worker_change *change,
			struct worker_report *report, struct failure *failure)
{
	struct status_group view CLEANUP(status_group_done) = {};
	struct tables tables CLEANUP(tables_done) = TABLES_NONE;
	const struct status_listener *listener;
	int err = tables_open(&tables, failure);

	if (err && failure->code != EXIT_DONE)
		return err;
	if (!err)
		err = status_group_read(&tables, pinned, &session->inventory, &view);
	if (err)
		return maps_failed(pinned, err, failure);
	err = worker_spec_find(worker, &view, &listener, failure);
	if (err)
		return err;
	memcpy(report->group, view.name, sizeof(report->group));
	worker_text(&view, listener, report->worker);
	report->row = listener->worker;
	report->held = listener->worker_held;
	err = note_others(session, pinned, report);
	if (!err)
		err = write_change(&tables, change, report);
	if (err)
		return maps_failed(pinned, err, failure);
	note_draining(&view, report);
	return 0;
}

int worker_change(const struct group_spec *spec, const struct worker_spec *worker,
		  const struct worker_change *change, struct worker_report *ret_report,
		  struct failure *failure)
{
	struct session session CLEANUP(session_done) = SESSION_NONE;
	const struct pinned_group *pinned = NULL;
	struct worker_report report = {};
	int err;

	err = find_group(&session, spec, &pinned, failure);
	if (!err)
		err = check_steered(&session, pinned, failure);
	/* The worker may have listeners in any of them. */
	if (!err)
		err = pinned_check(&session.pinned, failure);
	if (!err)
		err = change_found(&session, pinned, worker, change, &report, failure);
	if (!err)
		*ret_report = report;
	return err;
}

static int apply_pairs(const struct setting_pair *pairs, size_t nr_pairs, struct settings *settings,
		       struct failure *failure)
{
	size_t i;
	int err = 0;

	for (i = 0; i < nr_pairs && !err; i++)
		err = setting_apply(settings, pairs[i].name, pairs[i].value, failure);
	return err;
}

int group_set(const struct group_spec *spec, const struct setting_pair *pairs, size_t nr_pairs,
	      struct settings_report *ret_report, struct failure *failure)
{
	struct session session CLEANUP(session_done) = SESSION_NONE;
	const struct pinned_group *pinned = NULL;
	struct settings_report report;
	int err;

	err = apply_pairs(pairs, nr_pairs, &(struct settings){}, failure);
	if (!err)
		err = find_group(&session, spec, &pinned, failure);
	if (!err && nr_pairs)
		err = check_steered(&session, pinned, failure);
	if (err)
		return err;
	settings_name(&pinned->settings, report.group);
	report.before = report.after = pinned->settings;
	err = apply_pairs(pairs, nr_pairs, &report.after, failure);
	if (err)
		return err;
	if (nr_pairs)
		err = value_write(pinned->maps.settings, 0, &report.after);
	if (err)
		return maps_failed(pinned, err, failure);
	*ret_report = report;
	return 0;
}

int group_set_policy(const struct group_spec *spec, enum policy policy,
		     char ret_name[ADDRESS_TEXT_SIZE], struct failure *failure)
{
	const struct setting_pair pair = { "policy", policy_name(policy) };
	struct settings_report report;
	int err = group_set(spec, &pair, 1, &report, failure);

	if (!err)
		memcpy(ret_name, report.group, sizeof(report.group));
	return err;
}
