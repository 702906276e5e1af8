/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/iterate.h"
#include "base/cleanup.h"
#include "inspect.skel.h"
#include "kernel/log.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

/* How many rows the buffer grows by. */
#define ROWS_STEP 1024

static void cleanup_link(struct bpf_link **link)
{
	bpf_link__destroy(*link);
}

static int refused(struct failure *failure, int err)
{
	failure_set(failure, EXIT_MISSING, -err,
		    "the kernel refused to load the program that finds listeners: %s",
		    strerror(-err));
	kernel_log_add_tail(failure);
	return err;
}

/* Reads an iterator to its end. It yields whole rows, as many as fit. */
static int read_rows(int iterator, struct inspect_row **rows, size_t *nr_rows)
{
	size_t capacity = 0;
	ssize_t length;

	for (;;) {
		if (*nr_rows == capacity) {
			struct inspect_row *larger =
				reallocarray(*rows, capacity + ROWS_STEP, sizeof(**rows));

			if (!larger)
				return -ENOMEM;
			*rows = larger;
			capacity += ROWS_STEP;
		}
		length = read(iterator, *rows + *nr_rows, (capacity - *nr_rows) * sizeof(**rows));
		if (!length)
			return 0;
		/* The kernel pauses a long pass with EAGAIN. */
		if (length < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (length > 0)
			*nr_rows += (size_t)length / sizeof(**rows);
	}
}

static int run_iterator(struct bpf_program *program, struct inspect_row **rows, size_t *nr_rows)
{
	struct bpf_link *link CLEANUP(cleanup_link) = bpf_program__attach_iter(program, NULL);
	int iterator CLEANUP(cleanup_fd) = -1;

	if (!link)
		return -errno;
	iterator = bpf_iter_create(bpf_link__fd(link));
	if (iterator < 0)
		return -errno;
	return read_rows(iterator, rows, nr_rows);
}

struct inspector {
	struct inspect_bpf *skeleton; /* owned */
};

void inspector_free(struct inspector *inspector)
{
	if (inspector)
		inspect_bpf__destroy(inspector->skeleton);
	free(inspector);
}

static void cleanup_inspector(struct inspector **inspector)
{
	inspector_free(*inspector);
}

int inspector_new(struct inspector **ret_inspector, struct failure *failure)
{
	struct inspector *inspector CLEANUP(cleanup_inspector) = calloc(1, sizeof(*inspector));
	int err;

	if (!inspector)
		return failure_set(failure, EXIT_FAILED, ENOMEM, "out of memory");
	kernel_log_start();
	inspector->skeleton = inspect_bpf__open();
	if (!inspector->skeleton)
		return refused(failure, -errno);
	err = inspect_bpf__load(inspector->skeleton);
	if (err)
		return refused(failure, err);
	*ret_inspector = TAKE_PTR(inspector);
	return 0;
}

int inspector_read(struct inspector *inspector, struct inspect_row **ret_rows, size_t *ret_nr_rows,
		   struct failure *failure)
{
	struct inspect_row *rows CLEANUP(cleanup_free) = NULL;
	size_t nr_rows = 0;
	int err;

	err = run_iterator(inspector->skeleton->progs.inspect, &rows, &nr_rows);
	if (err)
		return failure_set(failure, EXIT_FAILED, -err, "cannot look for listeners: %s",
				   strerror(-err));
	*ret_rows = TAKE_PTR(rows);
	*ret_nr_rows = nr_rows;
	return 0;
}
