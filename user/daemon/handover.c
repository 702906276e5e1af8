/* SPDX-License-Identifier: GPL-2.0-only */
#include "daemon/handover.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "kernel/pins.h"
#include "kernel/values.h"
#include "steering/clear.h"
#include "steering/place.h"

#include <string.h>

static void log_changes(const struct group *place, const struct settings *before,
			const struct settings *after)
{
	char was[SETTING_TEXT_SIZE], is[SETTING_TEXT_SIZE], name[ADDRESS_TEXT_SIZE];
	const struct setting *setting;

	group_name(place, name);
	for (setting = settings_keys; setting->name; setting++) {
		setting->print(before, was);
		setting->print(after, is);
		if (!strcmp(was, is))
			continue;
		log_line(LOG_PRIORITY_NOTICE, "%s: %s is %s from now on, it was %s", name,
			 setting->name, is, was);
	}
}

int handover_settings(const struct orders *orders, const struct pinned_group *pinned,
		      const struct group *place, struct failure *failure)
{
	char name[ADDRESS_TEXT_SIZE];
	struct settings before, after;
	struct choice choice;
	int err;

	orders_choose(orders, place, &choice);
	err = value_read(pinned->maps.settings, 0, &before);
	if (!err) {
		after = before;
		choice_apply(&choice, &after);
		err = value_write(pinned->maps.settings, 0, &after);
	}
	if (!err) {
		log_changes(place, &before, &after);
		return 0;
	}
	group_name(place, name);
	return failure_set(failure, EXIT_FAILED, -err,
			   "%s: cannot write its settings, so they stay as they were: %s", name,
			   strerror(-err));
}

static void log_end(const struct group *place)
{
	char name[ADDRESS_TEXT_SIZE];

	group_name(place, name);
	log_line(LOG_PRIORITY_NOTICE,
		 "%s: no longer asked for; left to the kernel's hash from now on", name);
}

int handover_end(const struct orders *before, const struct orders *now, struct inspector *inspector,
		 const struct tables *tables, struct failure *failure)
{
	struct inventory inventory CLEANUP(inventory_done) = {};
	struct pinned pinned CLEANUP(pinned_done) = {};
	int lock CLEANUP(cleanup_fd) = -1;
	int first = pins_lock(&lock, failure), err;
	struct group place;
	size_t i;

	if (!first)
		first = inventory_scan_with(inspector, &inventory, failure);
	if (!first)
		first = pinned_open(&pinned, failure);
	/* Nobody knows whether that one was asked for. */
	if (!first)
		first = pinned_check(&pinned, failure);
	for (i = 0; i < pinned.nr_groups; i++) {
		if (!pinned.groups[i].known)
			continue;
		pinned_place(&pinned.groups[i], &inventory, &place);
		if (!orders_keep(before, &place) || (now && orders_keep(now, &place)))
			continue;
		err = clear_group(pinned.groups[i].folder, &inventory, tables, failure);
		if (!err && now)
			log_end(&place);
		first = first ? first : err;
	}
	return first;
}

int handover_orders(struct orders *orders, struct inspector *inspector, const struct tables *tables,
		    struct failure *failure)
{
	struct orders before CLEANUP(orders_done) = {}, now;
	struct failure end_failure = {};
	int err = orders_init(orders->options, &now, failure);

	if (err) {
		failure_add(failure, "; everything stays as it was configured before");
		return err;
	}
	before = *orders;
	*orders = now;
	if (handover_end(&before, orders, inspector, tables, &end_failure))
		log_line(LOG_PRIORITY_ERROR,
			 "cannot end steering of what is no longer asked for: %s; \"socksteer "
			 "detach\" ends it",
			 end_failure.message);
	return 0;
}
