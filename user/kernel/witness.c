/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/witness.h"
#include "base/cleanup.h"
#include "kernel/log.h"
#include "witness.skel.h"

#include <errno.h>
#include <string.h>

struct witness {
	struct witness_bpf *skeleton; /* owned */
	struct ring_buffer *ring; /* owned */
	witness_handler handler;
	void *argument;
};

void witness_free(struct witness *witness)
{
	if (!witness)
		return;
	ring_buffer__free(witness->ring);
	witness_bpf__destroy(witness->skeleton);
	free(witness);
}

static void cleanup_witness(struct witness **witness)
{
	witness_free(*witness);
}

static int handle_record(void *context, void *record, size_t size)
{
	const struct witness *witness = context;

	if (size >= sizeof(struct witness_record))
		witness->handler(record, witness->argument);
	return 0;
}

static int refused(struct failure *failure, int err)
{
	failure_set(failure, EXIT_MISSING, err,
		    "the kernel refused the program that watches listeners: %s", strerror(err));
	kernel_log_add_tail(failure);
	return -err;
}

int witness_new(witness_handler handler, void *argument, struct witness **ret_witness,
		struct failure *failure)
{
	struct witness *witness CLEANUP(cleanup_witness) = calloc(1, sizeof(*witness));

	if (!witness)
		return failure_set(failure, EXIT_FAILED, ENOMEM, "out of memory");
	witness->handler = handler;
	witness->argument = argument;
	kernel_log_start();
	witness->skeleton = witness_bpf__open_and_load();
	if (!witness->skeleton || witness_bpf__attach(witness->skeleton))
		return refused(failure, errno);
	witness->ring = ring_buffer__new(bpf_map__fd(witness->skeleton->maps.records),
					 handle_record, witness, NULL);
	if (!witness->ring)
		return failure_set(failure, EXIT_FAILED, errno,
				   "cannot read the records of listeners: %s", strerror(errno));
	*ret_witness = TAKE_PTR(witness);
	return 0;
}

int witness_get_fd(const struct witness *witness)
{
	return ring_buffer__epoll_fd(witness->ring);
}

int witness_drain(struct witness *witness)
{
	int count = ring_buffer__consume(witness->ring);

	return count < 0 ? count : 0;
}

uint64_t witness_nr_lost(const struct witness *witness)
{
	return witness->skeleton->bss->nr_lost;
}
