/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The audit in steps, as the daemon makes it: other things happen between two of its passes.
 */
#include "base/cleanup.h"
#include "kernel/auditor.h"
#include "kernel/iterate.h"
#include "kernel/values.h"
#include "steering/audit.h"
#include "support/clients.h"
#include "support/daemon.h"
#include "support/sandbox.h"
#include "support/scene.h"
#include "support/steered.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

TestSuite(audit_steps, .init = scene_enter, .timeout = TEST_SECONDS);

/* Takes connections off the counters of a slot, and of its worker. */
static void lose(const struct steered *steered, uint32_t slot, uint64_t nr)
{
	struct member member;

	cr_assert_eq(value_read(steered->maps.members, slot, &member), 0);
	load_falsify(steered->tables.listener_load, member.listener, 0, nr);
	load_falsify(steered->tables.worker_load, member.worker, 0, nr);
}

struct stepped {
	struct inspector *inspector; /* owned */
	struct auditor *auditor; /* owned */
	struct audit *audit; /* owned */
};

static void stepped_new(struct stepped *stepped, const struct steered *steered)
{
	struct failure failure = {};

	cr_assert_eq(inspector_new(&stepped->inspector, &failure), 0, "%s", failure.message);
	cr_assert_eq(auditor_new(&steered->tables, &stepped->auditor, &failure), 0, "%s",
		     failure.message);
	cr_assert_eq(audit_new(stepped->auditor, REPAIR_SEEN, &stepped->audit), 0);
}

static void stepped_done(struct stepped *stepped)
{
	audit_free(stepped->audit);
	auditor_free(stepped->auditor);
	inspector_free(stepped->inspector);
}

static int step(const struct stepped *stepped, bool *ret_done)
{
	struct failure failure = {};

	return audit_step(stepped->audit, stepped->inspector, ret_done, &failure);
}

Test(audit_steps, an_audit_in_steps_mends_what_all_of_them_find)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct audit_report report CLEANUP(audit_done) = {};
	struct stepped stepped CLEANUP(stepped_done) = {};
	struct servers servers;
	struct steered steered;
	bool is_done = false;

	servers_start(&servers, "--workers", "2");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	clients_hold(&clients, &servers.endpoint, 10);
	lose(&steered, 1, 3);
	stepped_new(&stepped, &steered);
	while (!is_done) {
		cr_expect_eq(steered_held(&steered, EVERY_SLOT), 7);
		cr_assert_eq(step(&stepped, &is_done), 0);
	}
	audit_take_report(stepped.audit, &report);
	cr_expect_eq(report.nr_adjusted, 3);
	cr_expect_gt(report.nr_passes, 1);
	cr_expect_eq(steered_held(&steered, EVERY_SLOT), 10);
}

Test(audit_steps, an_audit_in_steps_gives_up_when_a_listener_joins_between_them)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct stepped stepped CLEANUP(stepped_done) = {};
	struct servers servers, more;
	struct steered steered;
	bool is_done = false;
	char port[16];

	servers_start(&servers, "--workers", "2");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	clients_hold(&clients, &servers.endpoint, 10);
	lose(&steered, 1, 3);
	stepped_new(&stepped, &steered);
	cr_assert_eq(step(&stepped, &is_done), 0);
	cr_assert_not(is_done);
	snprintf(port, sizeof(port), "%u", steered.spec.port);
	servers_start(&more, "--workers", "1", "--port", port);
	steer_again(&steered);
	cr_expect_eq(step(&stepped, &is_done), -ESTALE);
	cr_expect_not(is_done);
}

Test(audit_steps, the_daemon_mends_a_difference_while_listeners_come)
{
	struct said said CLEANUP(said_done) = {};
	struct clients clients CLEANUP(clients_done) = {};
	struct servers joined, more;
	struct program daemon;
	struct steered steered;
	struct scene scene;

	scene_start(&scene, "--workers", "2");
	daemon_start(&daemon, NULL, &scene, NULL);
	await_steered_listeners(&scene, 2);
	clients_hold(&clients, &scene.servers.endpoint, 10);
	steered_open(&steered, &scene.servers.endpoint);
	lose(&steered, 0, 2);
	servers_start(&joined, "--workers", "1", "--port", scene.port + 1);
	servers_start(&more, "--workers", "1", "--port", scene.port + 1);
	daemon_await_said(&daemon, "counters were short of 2 connections; mended");
	await_held(&steered, EVERY_SLOT, 10);
	steered_done(&steered);
	daemon_stop(&daemon, &said);
}
