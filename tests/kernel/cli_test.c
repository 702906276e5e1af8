/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program as a person runs it, from list to detach: what it says when all goes well.
 */
#include "base/cleanup.h"
#include "support/clients.h"
#include "support/program.h"
#include "support/sandbox.h"
#include "support/scene.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <string.h>

TestSuite(cli, .init = scene_enter, .timeout = TEST_SECONDS);

static json_t *parse_json(const char *text)
{
	json_error_t error;
	json_t *document = json_loads(text, 0, &error);

	cr_assert_not_null(document, "%s at line %d of \"%s\"", error.text, error.line, text);
	return document;
}

static json_t *run_json(const char *command, const struct scene *scene)
{
	struct said said CLEANUP(said_done) = {};

	if (scene)
		program_run(&said, command, scene->group, "--netns", scene->netns, "--json");
	else
		program_run(&said, command, "--json");
	cr_assert_eq(said.code, EXIT_DONE, "%s: %s", command, said.error);
	return parse_json(said.output);
}

/* What a worker does at a moment is the one thing that may differ between two looks. */
static json_t *status_without_states(const struct scene *scene)
{
	json_t *status = run_json("status", scene), *listener;
	json_t *group = json_array_get(json_object_get(status, "groups"), 0);
	size_t i;

	json_array_foreach(json_object_get(group, "listeners"), i, listener)
		json_object_del(listener, "state");
	return status;
}

Test(cli, attaching_again_says_so_and_changes_nothing)
{
	struct said again CLEANUP(said_done) = {}, other CLEANUP(said_done) = {};
	struct footprint before, after;
	json_t *status, *status_after;
	struct scene scene;

	scene_start(&scene, "--workers", "3");
	program_succeeds("attach", scene.group, "--netns", scene.netns, "--policy", "p2c");
	clients_visit(&scene.servers.endpoint, 12, 1, END_WORKER_FIRST);
	footprint_look(&scene.servers.endpoint, &before);
	status = status_without_states(&scene);
	program_run(&again, "attach", scene.group, "--netns", scene.netns);
	expect_done(&again, "again", "is steered already");
	program_run(&other, "attach", scene.port, "--netns", scene.netns, "--policy", "hash");
	expect_done(&other, "other policy", "is steered already");
	cr_expect(strstr(other.error, "socksteer policy") != NULL, "\"%s\"", other.error);
	status_after = status_without_states(&scene);
	footprint_look(&scene.servers.endpoint, &after);
	cr_expect(json_equal(status, status_after));
	cr_expect_neq(before.prog_id, 0);
	cr_expect_eq(after.prog_id, before.prog_id);
	json_decref(status);
	json_decref(status_after);
}

/* One key of an object and the type that its value has to have. */
struct field {
	const char *key;
	json_type type; /* JSON_TRUE stands for either truth value */
};

static void expect_fields(const json_t *object, const struct field *fields, size_t nr_fields)
{
	size_t i;

	for (i = 0; i < nr_fields; i++) {
		const json_t *value = json_object_get(object, fields[i].key);

		cr_assert_not_null(value, "there is no \"%s\"", fields[i].key);
		cr_expect_eq(json_is_boolean(value) ? JSON_TRUE : json_typeof(value),
			     fields[i].type, "\"%s\" has type %d", fields[i].key,
			     json_typeof(value));
	}
}

static const struct field group_fields[] = {
	{ "name", JSON_STRING },     { "address", JSON_STRING },  { "family", JSON_STRING },
	{ "netns", JSON_INTEGER },   { "steered", JSON_TRUE },	  { "policy", JSON_STRING },
	{ "port", JSON_INTEGER },    { "listeners", JSON_ARRAY }, { "outcomes", JSON_OBJECT },
	{ "settings", JSON_OBJECT },
};

static const struct field listener_fields[] = {
	{ "slot", JSON_INTEGER },
	{ "cookie", JSON_INTEGER },
	{ "pid", JSON_INTEGER },
	{ "comm", JSON_STRING },
	{ "state", JSON_STRING },
	{ "weight", JSON_INTEGER },
	{ "held", JSON_INTEGER },
	{ "half_open", JSON_INTEGER },
	{ "queued", JSON_INTEGER },
	{ "backlog", JSON_INTEGER },
	{ "steered", JSON_INTEGER },
	{ "opened", JSON_INTEGER },
	{ "closed", JSON_INTEGER },
	{ "draining", JSON_TRUE },
	{ "slow_start_percent", JSON_INTEGER },
};

static const struct field outcome_fields[] = {
#define OUTCOME(NAME, name, text) { #name, JSON_INTEGER },
#include "socksteer/counters.def"
};

#define EXPECT_FIELDS(object, fields)                                                              \
	expect_fields(object, fields, sizeof(fields) / sizeof((fields)[0]))

Test(cli, status_is_json_with_the_promised_names_and_numbers_as_numbers)
{
	json_t *status, *group, *listeners, *listener;
	struct clients clients = {};
	json_int_t held = 0;
	struct scene scene;
	size_t i;

	scene_start(&scene, "--workers", "3");
	scene_attach(&scene);
	clients_hold(&clients, &scene.servers.endpoint, 6);
	status = run_json("status", NULL);
	cr_assert_eq(json_array_size(json_object_get(status, "groups")), 1);
	group = json_array_get(json_object_get(status, "groups"), 0);
	EXPECT_FIELDS(group, group_fields);
	EXPECT_FIELDS(json_object_get(group, "outcomes"), outcome_fields);
	cr_expect_str_eq(json_string_value(json_object_get(group, "name")), scene.group);
	cr_expect_str_eq(json_string_value(json_object_get(group, "address")), "127.0.0.1");
	cr_expect_str_eq(json_string_value(json_object_get(group, "family")), "inet");
	listeners = json_object_get(group, "listeners");
	cr_expect_eq(json_array_size(listeners), 3);
	json_array_foreach(listeners, i, listener)
	{
		EXPECT_FIELDS(listener, listener_fields);
		held += json_integer_value(json_object_get(listener, "held"));
		cr_expect_eq(json_integer_value(json_object_get(listener, "backlog")), 511);
		cr_expect_lt(servers_find(&scene.servers, (pid_t)json_integer_value(json_object_get(
								  listener, "pid"))),
			     scene.servers.nr_workers);
	}
	cr_expect_eq(held, 6);
	json_decref(status);
	clients_close(&clients, EVERY_WORKER);
}

/* The entry of list for the group of a scene, borrowed from the document. */
static json_t *find_listed(const json_t *list, const struct scene *scene)
{
	json_t *group;
	size_t i;

	json_array_foreach(json_object_get(list, "groups"), i, group)
	{
		char netns[NUMBER_BYTES];

		number_format((uint64_t)json_integer_value(json_object_get(group, "netns")), netns);
		if (!strcmp(netns, scene->netns))
			return group;
	}
	cr_assert_fail("%s is not listed", scene->group);
	return NULL;
}

static void expect_listed(const struct scene *scene, const char *steered_by)
{
	json_t *list = run_json("list", NULL), *group = find_listed(list, scene);
	const char *found = json_string_value(json_object_get(group, "steered_by"));

	cr_expect_eq(json_array_size(json_object_get(group, "listeners")),
		     scene->servers.nr_workers);
	cr_expect_eq(json_integer_value(json_object_get(group, "workers")),
		     (json_int_t)scene->servers.nr_workers);
	cr_expect(json_is_true(json_object_get(group, "steerable")));
	cr_expect(steered_by ? found && !strcmp(found, steered_by) : !found, "steered by %s",
		  found ? found : "nobody");
	json_decref(list);
}

Test(cli, a_group_is_listed_attached_shown_switched_and_detached)
{
	struct said attach CLEANUP(said_done) = {}, table CLEANUP(said_done) = {};
	struct said policy CLEANUP(said_done) = {}, switched CLEANUP(said_done) = {};
	struct said detach CLEANUP(said_done) = {}, all CLEANUP(said_done) = {};
	struct said nothing CLEANUP(said_done) = {}, again CLEANUP(said_done) = {};
	struct clients clients = {};
	struct scene scene;

	scene_start(&scene, "--workers", "4");
	clients_hold(&clients, &scene.servers.endpoint, 5);
	expect_listed(&scene, NULL);
	program_run(&nothing, "status");
	expect_done(&nothing, "status", "No group is steered.");
	program_run(&attach, "attach", scene.group, "--netns", scene.netns);
	expect_done(&attach, "attach",
		    "steering 4 listeners of 4 workers by least-loaded; 5 connections were");
	expect_listed(&scene, "socksteer");
	program_run(&table, "status", scene.port, "--netns", scene.netns);
	expect_done(&table, "status", "policy least-loaded, 4 listeners, steered\n");
	program_run(&policy, "policy", scene.group, "round-robin", "--netns", scene.netns);
	expect_done(&policy, "policy", "steered by round-robin from now on");
	program_run(&switched, "status");
	expect_done(&switched, "status", "policy round-robin, 4 listeners, steered\n");
	program_run(&detach, "detach", scene.group, "--netns", scene.netns);
	expect_done(&detach, "detach", "no longer steered");
	expect_listed(&scene, NULL);
	expect_untouched(&scene.servers.endpoint, "detach");

	scene_attach(&scene);
	program_run(&all, "detach", "--all");
	expect_done(&all, "detach --all", "1 group: no longer steered");
	program_run(&again, "detach", "--all");
	expect_done(&again, "detach --all", "no group was steered");
	expect_untouched(&scene.servers.endpoint, "detach --all");
	clients_close(&clients, EVERY_WORKER);
}

/* Two groups with the same address, in two networks; what is attached is the second. */
Test(cli, an_inode_a_path_or_a_process_tell_groups_apart)
{
	char pid[NUMBER_BYTES], path[64];
	struct footprint footprint;
	struct scene first, second;
	struct network network, home;
	size_t i;

	network_current(&home);
	scene_start(&first, "--workers", "2");
	network_new(&network);
	network_enter(&network);
	scene_start(&second, "--workers", "2", "--port", first.port + 1);
	number_format((uint64_t)second.servers.pids[0], pid);
	snprintf(path, sizeof(path), "/proc/%s/ns/net", pid);
	network_enter(&home);

	const char *const ways[][2] = { { "--netns", second.netns },
					{ "--netns", path },
					{ "--pid", pid } };

	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		program_succeeds("attach", first.group, ways[i][0], ways[i][1]);
		footprint_look(&first.servers.endpoint, &footprint);
		cr_expect_eq(footprint.prog_id, 0, "%s %s", ways[i][0], ways[i][1]);
		program_succeeds("status", first.group, ways[i][0], ways[i][1]);
		program_succeeds("detach", first.group, ways[i][0], ways[i][1]);
	}
	expect_untouched(&first.servers.endpoint, "apart");
	network_enter(&network);
	expect_untouched(&second.servers.endpoint, "apart");
	network_done(&network);
	network_done(&home);
}
