/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/tables.h"
#include "base/cleanup.h"
#include "kernel/log.h"
#include "kernel/pins.h"
#include "kernel/values.h"
#include "socksteer/types.h"
#include "track.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#define CLEANUP_TABLES __attribute__((cleanup(tables_done)))

static void cleanup_track(struct track_bpf **track)
{
	track_bpf__destroy(*track);
}

void tables_done(struct tables *tables)
{
	cleanup_fd(&tables->layout);
	cleanup_fd(&tables->workers);
	cleanup_fd(&tables->worker_load);
	cleanup_fd(&tables->listener_info);
	cleanup_fd(&tables->listener_load);
	cleanup_fd(&tables->events);
	cleanup_fd(&tables->audits);
	cleanup_fd(&tables->conn_owner);
	*tables = TABLES_NONE;
}

static int open_pin(const char *name, int *ret_fd)
{
	char path[PIN_PATH_SIZE];
	int err = pin_path(NULL, name, path);

	if (err)
		return err;
	*ret_fd = bpf_obj_get(path);
	return *ret_fd < 0 ? -errno : 0;
}

static int open_all(struct tables *tables)
{
	int err = open_pin("layout", &tables->layout);

	if (!err)
		err = open_pin("workers", &tables->workers);
	if (!err)
		err = open_pin("worker_load", &tables->worker_load);
	if (!err)
		err = open_pin("listener_info", &tables->listener_info);
	if (!err)
		err = open_pin("listener_load", &tables->listener_load);
	if (!err)
		err = open_pin("events", &tables->events);
	if (!err)
		err = open_pin("audits", &tables->audits);
	if (!err)
		err = open_pin("conn_owner", &tables->conn_owner);
	return err;
}

/* Every layout has its version alone in this map. */
static uint32_t read_version(const struct tables *tables)
{
	struct bpf_map_info info = {};
	__u32 length = sizeof(info);
	struct layout layout = {};

	if (bpf_obj_get_info_by_fd(tables->layout, &info, &length) ||
	    info.value_size != sizeof(layout) || value_read(tables->layout, 0, &layout))
		return 0;
	return layout.version;
}

static int check_version(const struct tables *tables, struct failure *failure)
{
	uint32_t version = read_version(tables);

	if (version == LAYOUT_VERSION)
		return 0;
	return failure_set(failure, EXIT_FAILED, EPROTO,
			   "the pins below " PINS_PATH
			   " have layout %u and this socksteer uses %u: "
			   "run \"socksteer detach --all\" and attach again",
			   version, LAYOUT_VERSION);
}

int tables_open(struct tables *ret_tables, struct failure *failure)
{
	struct tables tables CLEANUP_TABLES = TABLES_NONE;
	int err = open_all(&tables);

	if (err == -ENOENT)
		return err;
	if (err)
		return pins_refuse(NULL, err, failure);
	err = check_version(&tables, failure);
	if (err)
		return err;
	*ret_tables = tables;
	tables = TABLES_NONE;
	return 0;
}

static int pin_map(struct bpf_map *map)
{
	char path[PIN_PATH_SIZE];
	int err = pin_path(NULL, bpf_map__name(map), path);

	return err ? err : bpf_map__pin(map, path);
}

/* The link keeps its program attached for as long as it is pinned. */
static int attach_and_pin(struct bpf_program *program)
{
	struct bpf_link *link = bpf_program__attach(program);
	char path[PIN_PATH_SIZE];
	int err;

	if (!link)
		return -errno;
	err = pin_path(NULL, bpf_program__name(program), path);
	if (!err)
		err = bpf_link__pin(link, path);
	bpf_link__destroy(link);
	return err;
}

static int pin_all(struct track_bpf *track)
{
	struct layout layout = { .version = LAYOUT_VERSION };
	int err = pins_make_folder(NULL);

	if (!err)
		err = pin_map(track->maps.workers);
	if (!err)
		err = pin_map(track->maps.worker_load);
	if (!err)
		err = pin_map(track->maps.listener_info);
	if (!err)
		err = pin_map(track->maps.listener_load);
	if (!err)
		err = pin_map(track->maps.events);
	if (!err)
		err = pin_map(track->maps.audits);
	if (!err)
		err = pin_map(track->maps.conn_owner);
	if (!err)
		err = attach_and_pin(track->progs.track);
	if (!err)
		err = attach_and_pin(track->progs.track_again);
	if (!err)
		err = value_write(bpf_map__fd(track->maps.layout), 0, &layout);
	return err ? err : pin_map(track->maps.layout);
}

int tables_create(struct tables *ret_tables, struct failure *failure)
{
	struct track_bpf *track CLEANUP(cleanup_track) = NULL;
	int err;

	kernel_log_start();
	track = track_bpf__open_and_load();
	if (!track) {
		err = failure_set(failure, EXIT_MISSING, errno,
				  "the kernel refused to load the tracking program: %s",
				  strerror(errno));
		kernel_log_add_tail(failure);
		return err;
	}
	err = pin_all(track);
	if (err) {
		pins_remove(NULL);
		return failure_set(failure, EXIT_FAILED, -err,
				   "cannot attach and pin tracking below " PINS_PATH ": %s",
				   strerror(-err));
	}
	return tables_open(ret_tables, failure);
}
