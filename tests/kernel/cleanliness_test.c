/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What an attach leaves in the kernel and in this process, and that a detach takes all of it away.
 */
#include "support/clients.h"
#include "support/sandbox.h"
#include "support/servers.h"
#include "support/steered.h"
#include "support/waiting.h"
#include "base/cleanup.h"
#include "kernel/pins.h"
#include "steering/drain.h"
#include "steering/scan.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* More than one group of ours has of each. */
#define IDS_MAX 64

TestSuite(cleanliness, .init = quick_sandbox_enter, .timeout = TEST_SECONDS);

/* What the kernel has of us, by id. */
struct ids {
	uint32_t programs[IDS_MAX], maps[IDS_MAX], links[IDS_MAX];
	size_t nr_programs, nr_maps, nr_links;
};

static void id_add(uint32_t *ids, size_t *nr, uint32_t id)
{
	cr_assert_lt(*nr, (size_t)IDS_MAX);
	ids[(*nr)++] = id;
}

/* A program, and all its maps, those without a pin included. */
static void program_add(struct ids *ids, uint32_t id)
{
	int fd CLEANUP(cleanup_fd) = bpf_prog_get_fd_by_id(id);
	uint32_t maps[IDS_MAX] = {}, i;
	struct bpf_prog_info info = {
		.nr_map_ids = IDS_MAX,
		.map_ids = (uintptr_t)maps,
	};
	__u32 length = sizeof(info);

	cr_assert(fd >= 0, "program %u: %s", id, strerror(errno));
	cr_assert_eq(bpf_obj_get_info_by_fd(fd, &info, &length), 0);
	id_add(ids->programs, &ids->nr_programs, id);
	for (i = 0; i < info.nr_map_ids; i++)
		id_add(ids->maps, &ids->nr_maps, maps[i]);
}

static bool link_add(struct ids *ids, int fd)
{
	struct bpf_link_info info = {};
	__u32 length = sizeof(info);
	char path[64], target[64] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	cr_assert(readlink(path, target, sizeof(target) - 1) > 0);
	if (!strstr(target, "bpf_link") && !strstr(target, "bpf-link"))
		return false;
	cr_assert_eq(bpf_obj_get_info_by_fd(fd, &info, &length), 0);
	id_add(ids->links, &ids->nr_links, info.id);
	program_add(ids, info.prog_id);
	return true;
}

/* The links are pinned in the folder itself, steer and its maps in the group's. */
static void ids_read(const struct steered *steered, struct ids *ret_ids)
{
	DIR *dir CLEANUP(cleanup_dir) = opendir(PINS_PATH);
	struct dirent *entry;

	*ret_ids = (struct ids){};
	cr_assert_not_null(dir);
	while ((entry = readdir(dir))) {
		int fd CLEANUP(cleanup_fd) = -1;
		char path[PIN_PATH_SIZE];

		if (entry->d_type == DT_DIR || pin_path(NULL, entry->d_name, path))
			continue;
		fd = bpf_obj_get(path);
		cr_assert(fd >= 0, "%s: %s", path, strerror(errno));
		link_add(ret_ids, fd);
	}
	program_add(ret_ids, steered->maps.program_id);
}

static bool is_gone(int (*open_by_id)(uint32_t id), const uint32_t *ids, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		int fd CLEANUP(cleanup_fd) = open_by_id(ids[i]);

		if (fd >= 0)
			return false;
	}
	return true;
}

/* The kernel frees what nobody uses any more a moment later. */
static bool are_gone(void *argument)
{
	const struct ids *ids = argument;

	return is_gone(bpf_prog_get_fd_by_id, ids->programs, ids->nr_programs) &&
	       is_gone(bpf_map_get_fd_by_id, ids->maps, ids->nr_maps) &&
	       is_gone(bpf_link_get_fd_by_id, ids->links, ids->nr_links);
}

static void expect_no_program(const struct group_spec *spec)
{
	struct inventory inventory = {};
	struct failure failure = {};
	size_t i, found = 0;

	cr_assert_eq(inventory_scan(&inventory, &failure), 0, "%s", failure.message);
	for (i = 0; i < inventory.nr_groups; i++) {
		if (!group_spec_matches(spec, &inventory.groups[i]))
			continue;
		cr_expect_eq(inventory.groups[i].prog_id, 0);
		cr_expect_not(inventory.groups[i].ours);
		found++;
	}
	inventory_done(&inventory);
	cr_expect_eq(found, 1);
}

Test(cleanliness, detaching_everything_leaves_nothing_in_the_kernel)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;
	struct failure failure = {};
	struct ids ids;
	size_t nr_groups;

	servers_start(&servers, "--workers", "3");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	clients_hold(&clients, &servers.endpoint, 9);
	ids_read(&steered, &ids);
	cr_expect_eq(ids.nr_links, 2);
	cr_expect_eq(ids.nr_programs, 3);
	cr_expect_geq(ids.nr_maps, 10);

	group_maps_done(&steered.maps);
	tables_done(&steered.tables);
	cr_assert_eq(group_detach_all(&nr_groups, &failure), 0, "%s", failure.message);
	cr_expect_eq(nr_groups, 1);
	cr_expect_neq(access(PINS_PATH, F_OK), 0);
	expect_no_program(&steered.spec);
	/* The records of the open connections hold their map, and nothing else. */
	clients_close(&clients, EVERY_WORKER);
	cr_expect(wait_until(are_gone, &ids, DEADLINE_MS));
}

Test(cleanliness, detaching_the_last_group_takes_the_shared_tables_along)
{
	struct servers first, second;
	struct steered of_first, of_second;

	servers_start(&first, "--workers", "2");
	servers_start(&second, "--workers", "2");
	steer(&of_first, &first.endpoint, POLICY_LEAST_LOADED);
	steer(&of_second, &second.endpoint, POLICY_LEAST_LOADED);
	steered_detach(&of_first);
	expect_no_program(&of_first.spec);
	cr_expect_eq(access(PINS_PATH "/workers", F_OK), 0);
	steered_detach(&of_second);
	expect_no_program(&of_second.spec);
	cr_expect_neq(access(PINS_PATH, F_OK), 0);
}

Test(cleanliness, detaching_leaves_the_group_serving)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct servers servers;
	struct steered steered;

	servers_start(&servers, "--workers", "3");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	clients_hold(&clients, &servers.endpoint, 9);
	steered_detach(&steered);
	clients_hold(&clients, &servers.endpoint, 9);
	cr_assert_eq(client_send(&clients.items[0], "/"), 0);
	cr_expect_eq(client_receive(&clients.items[0]), 0);
}

/* Open descriptors of this process, sockets apart from the others. */
struct descriptors {
	size_t nr_sockets;
	size_t nr;
};

static void descriptors_count(struct descriptors *ret_count)
{
	DIR *dir CLEANUP(cleanup_dir) = opendir("/proc/self/fd");
	struct dirent *entry;

	*ret_count = (struct descriptors){};
	cr_assert_not_null(dir);
	while ((entry = readdir(dir))) {
		struct stat info;

		if (fstatat(dirfd(dir), entry->d_name, &info, 0))
			continue;
		ret_count->nr++;
		ret_count->nr_sockets += S_ISSOCK(info.st_mode);
	}
}

/* Weight, draining, and a look at what is left. */
static void operate(const struct group_spec *group)
{
	const struct worker_change change = { .set_flags = WORKER_DRAINING, .weight = 2 };
	struct worker_report report;
	struct failure failure = {};
	struct worker_spec worker;
	struct drain_state state;
	struct drain *drain;

	cr_assert_eq(worker_spec_parse("slot:0", &worker), 0);
	cr_assert_eq(worker_change(group, &worker, &change, &report, &failure), 0, "%s",
		     failure.message);
	cr_assert_eq(drain_new(&report, &drain, &failure), 0, "%s", failure.message);
	cr_assert_eq(drain_look(drain, &state, &failure), 0, "%s", failure.message);
	cr_expect_eq(state.stage, DRAIN_EMPTY);
	drain_free(&drain);
}

Test(cleanliness, no_descriptor_is_kept_by_any_of_the_commands)
{
	const struct attach_options options = { .policy = POLICY_LEAST_LOADED };
	struct descriptors before, after;
	char text[ENDPOINT_TEXT_BYTES], name[ADDRESS_TEXT_SIZE];
	struct attach_report report;
	struct failure failure = {};
	struct group_spec spec;
	struct servers servers;
	struct status status;

	servers_start(&servers, "--workers", "4");
	spec_of_endpoint(&servers.endpoint, text, &spec);
	descriptors_count(&before);
	cr_assert_eq(group_attach(&spec, &options, &report, &failure), 0, "%s", failure.message);
	descriptors_count(&after);
	cr_expect_eq(after.nr_sockets, before.nr_sockets, "attach keeps a listener");
	cr_expect_eq(after.nr, before.nr, "attach keeps a descriptor");
	cr_assert_eq(status_read(&spec, &status, &failure), 0, "%s", failure.message);
	status_done(&status);
	cr_assert_eq(group_set_policy(&spec, POLICY_P2C, name, &failure), 0);
	operate(&spec);
	cr_assert_eq(group_detach(&spec, name, &failure), 0, "%s", failure.message);
	descriptors_count(&after);
	cr_expect_eq(after.nr, before.nr, "a command keeps a descriptor");
}

/* Pinned maps, and a field of their values that a person looks for. */
static const struct {
	const char *map;
	const char *field;
} readable[] = {
	{ "workers", "pid" },	       { "workers", "comm" },	      { "workers", "weight" },
	{ "worker_load", "opened" },   { "worker_load", "closed" },   { "worker_load", "steered" },
	{ "worker_load", "migrated" }, { "listener_info", "cookie" }, { "listener_load", "opened" },
};

static bool has_field(const struct btf *btf, uint32_t type_id, const char *field)
{
	const struct btf_type *type = btf__type_by_id(btf, type_id);
	const struct btf_member *member;
	int i;

	if (!type || !btf_is_struct(type))
		return false;
	member = btf_members(type);
	for (i = 0; i < btf_vlen(type); i++)
		if (!strcmp(btf__name_by_offset(btf, member[i].name_off), field))
			return true;
	return false;
}

static void expect_field(const char *map, const char *field)
{
	int fd CLEANUP(cleanup_fd) = -1;
	struct bpf_map_info info = {};
	__u32 length = sizeof(info);
	char path[PIN_PATH_SIZE];
	struct btf *btf;

	cr_assert_eq(pin_path(NULL, map, path), 0);
	fd = bpf_obj_get(path);
	cr_assert(fd >= 0, "%s: %s", path, strerror(errno));
	cr_assert_eq(bpf_obj_get_info_by_fd(fd, &info, &length), 0);
	cr_expect_neq(info.btf_key_type_id, 0, "%s", map);
	btf = btf__load_from_kernel_by_id(info.btf_id);
	cr_assert_not_null(btf, "%s has no BTF", map);
	cr_expect(has_field(btf, info.btf_value_type_id, field), "%s has no %s", map, field);
	btf__free(btf);
}

/* What bpftool prints of a pinned map contains this; true without bpftool. */
static bool bpftool_prints(const char *map, const char *text)
{
	char command[512], line[4096];
	bool found = false;
	FILE *output;

	snprintf(
		command, sizeof(command),
		"PATH=$PATH:/usr/sbin:/sbin; command -v bpftool >/dev/null || { echo '%s'; exit; }; "
		"bpftool -j map dump pinned %s/%s",
		text, PINS_PATH, map);
	output = popen(command, "re");
	cr_assert_not_null(output);
	while (fgets(line, sizeof(line), output))
		found = found || strstr(line, text);
	cr_assert_eq(pclose(output), 0, "%s", command);
	return found;
}

Test(cleanliness, the_pinned_tables_have_named_fields)
{
	struct servers servers;
	struct steered steered;
	size_t i;

	servers_start(&servers, "--workers", "2");
	steer(&steered, &servers.endpoint, POLICY_LEAST_LOADED);
	for (i = 0; i < sizeof(readable) / sizeof(readable[0]); i++)
		expect_field(readable[i].map, readable[i].field);
	cr_expect(bpftool_prints("workers", "\"comm\":\"epoll-worker\""));
	cr_expect(bpftool_prints("worker_load", "\"opened\":0"));
}
