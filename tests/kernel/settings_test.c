/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Settings of a group that serves, slow start above all: the program as a person runs it, and where
 * the next connections go.
 */
#include "base/cleanup.h"
#include "kernel/values.h"
#include "support/clients.h"
#include "support/program.h"
#include "support/sandbox.h"
#include "support/scene.h"
#include "support/steered.h"

#include <criterion/criterion.h>

TestSuite(settings, .init = scene_enter, .timeout = TEST_SECONDS);

/* Starts this many workers and steers them. */
static void begin(struct scene *scene, struct steered *steered, const char *nr_workers,
		  enum policy policy)
{
	scene_start(scene, "--workers", nr_workers);
	steer(steered, &scene->servers.endpoint, policy);
}

Test(settings, set_prints_the_settings_as_it_takes_them)
{
	struct said json CLEANUP(said_done) = {};
	struct steered steered;
	struct scene scene;

	begin(&scene, &steered, "2", POLICY_P2C);
	scene_says(
		&scene, "set", "slow-start=10m", "busy-penalty=2",
		": slow-start is 10m from now on, it was 1s; busy-penalty is 2.00 from now on, it was "
		"0.50\n");
	scene_says(&scene, "set", "slow-start=10m", NULL, ": nothing changed\n");
	scene_says(&scene, "set", NULL, NULL,
		   "policy=p2c\nslow-start=10m\nbusy-penalty=2.00\nstuck-after=60m\nrescue=off\n");
	program_run(&json, "set", scene.group, "--netns", scene.netns, "--json");
	expect_done(&json, "set --json",
		    "  \"settings\": {\n"
		    "    \"policy\": \"p2c\",\n"
		    "    \"slow-start\": \"10m\",\n"
		    "    \"busy-penalty\": \"2.00\",\n"
		    "    \"stuck-after\": \"60m\",\n"
		    "    \"rescue\": \"off\"\n"
		    "  }\n");
	scene_says(&scene, "status", "--json", NULL, "\"slow-start\": \"10m\"");
}

Test(settings, one_wrong_pair_leaves_all_settings_as_they_were)
{
	struct said value CLEANUP(said_done) = {}, key CLEANUP(said_done) = {};
	struct settings before, after;
	struct steered steered;
	struct scene scene;

	begin(&scene, &steered, "2", POLICY_LEAST_LOADED);
	cr_assert_eq(value_read(steered.maps.settings, 0, &before), 0);
	program_run(&value, "set", scene.group, "--netns", scene.netns, "policy=hash",
		    "slow-start=never");
	expect_refused(&value, "value", EXIT_USAGE, "\"never\" is no value for slow-start");
	program_run(&key, "set", scene.group, "--netns", scene.netns, "policy=hash", "speed=9");
	expect_refused(&key, "key", EXIT_USAGE, "there is no setting \"speed\"");
	cr_assert_eq(value_read(steered.maps.settings, 0, &after), 0);
	cr_expect_arr_eq(&before, &after, sizeof(before));
}

Test(settings, set_switches_the_policy_from_the_next_connection_on)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct steered steered;
	struct counts before;
	struct scene scene;

	begin(&scene, &steered, "2", POLICY_LEAST_LOADED);
	scene_says(&scene, "set", "policy=hash", NULL,
		   "policy is hash from now on, it was least-loaded");
	steered_count(&steered, &before);
	clients_hold(&clients, &scene.servers.endpoint, 5);
	expect_outcomes(&steered, &before, (struct outcomes){ .hash = 5 });
	scene_says(&scene, "policy", "p2c", NULL, "steered by p2c from now on");
	steered_count(&steered, &before);
	clients_hold(&clients, &scene.servers.endpoint, 5);
	expect_outcomes(&steered, &before, (struct outcomes){ .selected = 5 });
}

/* Four workers that hold eight connections each, and one that has just joined them. */
struct joining {
	struct scene scene;
	struct steered steered;
	struct servers joined;
	struct clients clients;
};

static void join(struct joining *joining, const char *slow_start)
{
	*joining = (struct joining){};
	begin(&joining->scene, &joining->steered, "4", POLICY_LEAST_LOADED);
	scene_says(&joining->scene, "set", slow_start, NULL, joining->scene.group);
	clients_hold(&joining->clients, &joining->scene.servers.endpoint, 32);
	servers_start(&joining->joined, "--workers", "1", "--port", joining->scene.port + 1);
	steer_again(&joining->steered);
	cr_assert_eq(joining->steered.report.nr_added, 1);
}

/* How many of the next eight connections the worker that joined gets. */
static size_t next_eight(struct joining *joining)
{
	size_t i, count = 0, first = joining->clients.nr;

	clients_hold(&joining->clients, &joining->scene.servers.endpoint, 8);
	for (i = first; i < joining->clients.nr; i++)
		count += joining->clients.items[i].pid == joining->joined.pids[0];
	return count;
}

Test(settings, a_worker_in_its_slow_start_gets_one_connection_and_then_its_turn)
{
	struct joining joining;

	join(&joining, "slow-start=10m");
	cr_expect_eq(next_eight(&joining), 1);
	scene_says(&joining.scene, "status", NULL, NULL, ", slow start 0%");
	scene_says(&joining.scene, "status", "--json", NULL, "\"slow_start_percent\": 0,");
	scene_says(&joining.scene, "set", "slow-start=0", NULL,
		   "slow-start is 0 from now on, it was 10m");
	cr_expect_eq(next_eight(&joining), 8);
	scene_says(&joining.scene, "status", "--json", NULL, "\"slow_start_percent\": 100,");
	clients_done(&joining.clients);
}

Test(settings, without_slow_start_the_worker_that_joins_gets_all_until_it_holds_as_many)
{
	struct joining joining;

	join(&joining, "slow-start=0");
	cr_expect_eq(next_eight(&joining), 8);
	clients_done(&joining.clients);
}

Test(settings, a_slow_start_that_is_set_later_reaches_who_joined_before)
{
	struct joining joining;

	join(&joining, "slow-start=0");
	/* From here on every CPU may rely on it that nobody is in a slow start. */
	clients_hold(&joining.clients, &joining.scene.servers.endpoint, 4);
	scene_says(&joining.scene, "set", "slow-start=10m", NULL, "slow-start is 10m");
	cr_expect_eq(next_eight(&joining), 0);
	clients_done(&joining.clients);
}
