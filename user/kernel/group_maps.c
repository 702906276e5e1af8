/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/group_maps.h"
#include "base/cleanup.h"
#include "kernel/log.h"
#include "kernel/pins.h"
#include "steer.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#define CLEANUP_GROUP_MAPS __attribute__((cleanup(group_maps_done)))

/* More maps than one steer program uses. */
#define MAX_PROGRAM_MAPS 32

static void cleanup_steer(struct steer_bpf **steer)
{
	steer_bpf__destroy(*steer);
}

void group_maps_done(struct group_maps *maps)
{
	cleanup_fd(&maps->listeners);
	cleanup_fd(&maps->members);
	cleanup_fd(&maps->counters);
	cleanup_fd(&maps->settings);
	cleanup_fd(&maps->rotation);
	cleanup_fd(&maps->snapshot);
	cleanup_fd(&maps->alarms);
	cleanup_fd(&maps->program);
	cleanup_fd(&maps->sample);
	cleanup_fd(&maps->survey);
	*maps = GROUP_MAPS_NONE;
}

static int open_pin(const char *folder, const char *name, int *ret_fd)
{
	char path[PIN_PATH_SIZE];
	int err = pin_path(folder, name, path);

	if (err)
		return err;
	*ret_fd = bpf_obj_get(path);
	return *ret_fd < 0 ? -errno : 0;
}

/*
 * A map whose values are of this size. The kernel copies as much as the map's values have, so one of
 * another layout must not be read at all: -ENOENT.
 */
static int open_map(const char *folder, const char *name, size_t value_bytes, int *ret_fd)
{
	int fd CLEANUP(cleanup_fd) = -1;
	struct bpf_map_info info = {};
	__u32 length = sizeof(info);
	int err = open_pin(folder, name, &fd);

	if (err)
		return err;
	if (bpf_obj_get_info_by_fd(fd, &info, &length))
		return -errno;
	if (info.value_size != value_bytes)
		return -ENOENT;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static uint32_t program_id(int program)
{
	struct bpf_prog_info info = {};
	__u32 length = sizeof(info);

	return program < 0 || bpf_obj_get_info_by_fd(program, &info, &length) ? 0 : info.id;
}

/* Of several errors the one that is not just a pin that is missing. */
static void note(int *first, int err)
{
	if (!*first || (*first == -ENOENT && err))
		*first = err;
}

int group_maps_open_rest(const char *folder, struct group_maps *ret_maps)
{
	struct group_maps maps = GROUP_MAPS_NONE;
	int err = 0;

	note(&err, open_map(folder, "listeners", sizeof(uint64_t), &maps.listeners));
	note(&err, open_map(folder, "members", sizeof(struct member), &maps.members));
	note(&err, open_map(folder, "counters", sizeof(uint64_t), &maps.counters));
	note(&err, open_map(folder, "settings", sizeof(struct settings), &maps.settings));
	note(&err, open_map(folder, "rotation", sizeof(struct rotation), &maps.rotation));
	note(&err, open_map(folder, "snapshot", sizeof(struct snapshot), &maps.snapshot));
	note(&err, open_map(folder, "alarms", sizeof(struct alarm), &maps.alarms));
	note(&err, open_pin(folder, "steer", &maps.program));
	note(&err, open_pin(folder, "sample", &maps.sample));
	note(&err, open_pin(folder, "survey", &maps.survey));
	maps.program_id = program_id(maps.program);
	*ret_maps = maps;
	return err;
}

int group_maps_open(const char *folder, struct group_maps *ret_maps)
{
	struct group_maps maps CLEANUP_GROUP_MAPS = GROUP_MAPS_NONE;
	int err = group_maps_open_rest(folder, &maps);

	if (err)
		return err;
	*ret_maps = maps;
	maps = GROUP_MAPS_NONE;
	return 0;
}

static int reuse_tables(struct steer_bpf *steer, const struct tables *tables)
{
	int err = bpf_map__reuse_fd(steer->maps.workers, tables->workers);

	if (!err)
		err = bpf_map__reuse_fd(steer->maps.worker_load, tables->worker_load);
	if (!err)
		err = bpf_map__reuse_fd(steer->maps.listener_info, tables->listener_info);
	if (!err)
		err = bpf_map__reuse_fd(steer->maps.listener_load, tables->listener_load);
	if (!err)
		err = bpf_map__reuse_fd(steer->maps.events, tables->events);
	if (!err)
		err = bpf_map__reuse_fd(steer->maps.audits, tables->audits);
	if (!err)
		err = bpf_map__reuse_fd(steer->maps.layout, tables->layout);
	return err;
}

static int pin_map(const char *folder, struct bpf_map *map)
{
	char path[PIN_PATH_SIZE];
	int err = pin_path(folder, bpf_map__name(map), path);

	return err ? err : bpf_map__pin(map, path);
}

static int pin_program(const char *folder, struct bpf_program *program)
{
	char path[PIN_PATH_SIZE];
	int err = pin_path(folder, bpf_program__name(program), path);

	return err ? err : bpf_program__pin(program, path);
}

static int pin_all(struct steer_bpf *steer, const char *folder)
{
	int err = pins_make_folder(folder);

	if (!err)
		err = pin_map(folder, steer->maps.listeners);
	if (!err)
		err = pin_map(folder, steer->maps.members);
	if (!err)
		err = pin_map(folder, steer->maps.counters);
	if (!err)
		err = pin_map(folder, steer->maps.settings);
	if (!err)
		err = pin_map(folder, steer->maps.rotation);
	if (!err)
		err = pin_map(folder, steer->maps.snapshot);
	if (!err)
		err = pin_map(folder, steer->maps.alarms);
	if (!err)
		err = pin_program(folder, steer->progs.survey);
	if (!err)
		err = pin_program(folder, steer->progs.sample);
	return err ? err : pin_program(folder, steer->progs.steer);
}

static int load_steer(const struct features *features, const struct tables *tables,
		      struct steer_bpf **ret_steer)
{
	struct steer_bpf *steer CLEANUP(cleanup_steer) = steer_bpf__open();
	int err;

	if (!steer)
		return -errno;
	steer->rodata->nr_cpus = features->nr_cpus;
	err = reuse_tables(steer, tables);
	if (!err)
		err = steer_bpf__load(steer);
	if (!err)
		*ret_steer = TAKE_PTR(steer);
	return err;
}

int group_maps_create(const struct features *features, const struct tables *tables,
		      const char *folder, struct group_maps *ret_maps, struct failure *failure)
{
	struct steer_bpf *steer CLEANUP(cleanup_steer) = NULL;
	int err;

	kernel_log_start();
	err = load_steer(features, tables, &steer);
	if (err) {
		failure_set(failure, EXIT_MISSING, -err,
			    "the kernel refused to load the steering program: %s", strerror(-err));
		kernel_log_add_tail(failure);
		return err;
	}
	err = pin_all(steer, folder);
	if (!err)
		err = group_maps_open(folder, ret_maps);
	if (err) {
		pins_remove(folder);
		return failure_set(failure, EXIT_FAILED, -err,
				   "cannot pin the steering program below " PINS_PATH "/%s: %s",
				   folder, strerror(-err));
	}
	return 0;
}

/* A map by id, if it is a sockarray; else -1. */
static int open_sockarray(uint32_t id)
{
	int fd CLEANUP(cleanup_fd) = bpf_map_get_fd_by_id(id);
	struct bpf_map_info info = {};
	__u32 length = sizeof(info);

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &length) ||
	    info.type != BPF_MAP_TYPE_REUSEPORT_SOCKARRAY)
		return -1;
	return TAKE_FD(fd);
}

int program_open(uint32_t id, int *ret_program)
{
	*ret_program = bpf_prog_get_fd_by_id(id);
	return *ret_program < 0 ? -errno : 0;
}

int group_maps_find_listeners(uint32_t id, int *ret_listeners)
{
	int program CLEANUP(cleanup_fd) = bpf_prog_get_fd_by_id(id);
	__u32 map_ids[MAX_PROGRAM_MAPS] = {}, length, i;
	struct bpf_prog_info info = {
		.nr_map_ids = MAX_PROGRAM_MAPS,
		.map_ids = (__u64)(unsigned long)map_ids,
	};

	if (program < 0)
		return -errno;
	length = sizeof(info);
	if (bpf_obj_get_info_by_fd(program, &info, &length))
		return -errno;
	for (i = 0; i < info.nr_map_ids && i < MAX_PROGRAM_MAPS; i++) {
		*ret_listeners = open_sockarray(map_ids[i]);
		if (*ret_listeners >= 0)
			return 0;
	}
	return -ENOENT;
}

static int run_program(int program, uint32_t *ret_value)
{
	struct bpf_test_run_opts options = { .sz = sizeof(options) };

	if (bpf_prog_test_run_opts(program, &options) < 0)
		return -errno;
	*ret_value = options.retval;
	return 0;
}

int group_maps_sample(const struct group_maps *maps, uint32_t *ret_prog_id)
{
	return run_program(maps->sample, ret_prog_id);
}

int group_maps_survey(const struct group_maps *maps, uint32_t *ret_result)
{
	return run_program(maps->survey, ret_result);
}
