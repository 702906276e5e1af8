/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/watch.h"
#include "base/cleanup.h"
#include "kernel/log.h"
#include "watch.skel.h"

#include <errno.h>
#include <string.h>

struct watch {
	struct watch_bpf *skeleton; /* owned */
	struct ring_buffer *ring; /* owned */
	watch_handler handler;
	void *argument;
};

void watch_free(struct watch *watch)
{
	if (!watch)
		return;
	ring_buffer__free(watch->ring);
	watch_bpf__destroy(watch->skeleton);
	free(watch);
}

static void cleanup_watch(struct watch **watch)
{
	watch_free(*watch);
}

static int handle_record(void *context, void *record, size_t size)
{
	const struct watch *watch = context;

	if (size >= sizeof(struct watch_record))
		watch->handler(record, watch->argument);
	return 0;
}

static int refused(struct failure *failure, int err)
{
	failure_set(failure, EXIT_MISSING, err,
		    "the kernel refused the program that watches listeners: %s", strerror(err));
	kernel_log_add_tail(failure);
	return -err;
}

int watch_new(watch_handler handler, void *argument, struct watch **ret_watch,
	      struct failure *failure)
{
	struct watch *watch CLEANUP(cleanup_watch) = calloc(1, sizeof(*watch));

	if (!watch)
		return failure_set(failure, EXIT_FAILED, ENOMEM, "out of memory");
	watch->handler = handler;
	watch->argument = argument;
	kernel_log_start();
	watch->skeleton = watch_bpf__open_and_load();
	if (!watch->skeleton || watch_bpf__attach(watch->skeleton))
		return refused(failure, errno);
	watch->ring = ring_buffer__new(bpf_map__fd(watch->skeleton->maps.records), handle_record,
				       watch, NULL);
	if (!watch->ring)
		return failure_set(failure, EXIT_FAILED, errno,
				   "cannot read the records of listeners: %s", strerror(errno));
	*ret_watch = TAKE_PTR(watch);
	return 0;
}

int watch_get_fd(const struct watch *watch)
{
	return ring_buffer__epoll_fd(watch->ring);
}

int watch_drain(struct watch *watch)
{
	int count = ring_buffer__consume(watch->ring);

	return count < 0 ? count : 0;
}

uint64_t watch_nr_lost(const struct watch *watch)
{
	return watch->skeleton->bss->nr_lost;
}
