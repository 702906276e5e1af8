/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/session.h"
#include "base/cleanup.h"
#include "kernel/pins.h"
#include "steering/scan.h"

int session_begin(struct session *session, enum purpose purpose, struct failure *failure)
{
	int err;

	err = rights_check(purpose, failure);
	if (!err)
		err = pins_check(failure);
	if (!err)
		err = pins_lock(&session->lock, failure);
	if (!err)
		err = inventory_scan(&session->inventory, failure);
	if (!err)
		err = pinned_open(&session->pinned, failure);
	return err;
}

void session_done(struct session *session)
{
	pinned_done(&session->pinned);
	inventory_done(&session->inventory);
	cleanup_fd(&session->lock);
}
