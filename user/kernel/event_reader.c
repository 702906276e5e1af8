/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/event_reader.h"
#include "base/cleanup.h"

#include <bpf/libbpf.h>
#include <errno.h>

struct event_reader {
	struct ring_buffer *ring; /* owned */
	event_handler handler;
	void *argument;
};

static int handle_record(void *context, void *record, size_t size)
{
	const struct event_reader *reader = context;

	if (size >= sizeof(struct event))
		reader->handler(record, reader->argument);
	return 0;
}

int event_reader_new(int events, event_handler handler, void *argument,
		     struct event_reader **ret_reader)
{
	struct event_reader *reader = calloc(1, sizeof(*reader));
	int err;

	if (!reader)
		return -ENOMEM;
	reader->handler = handler;
	reader->argument = argument;
	reader->ring = ring_buffer__new(events, handle_record, reader, NULL);
	if (!reader->ring) {
		err = -errno;
		free(reader);
		return err;
	}
	*ret_reader = reader;
	return 0;
}

void event_reader_free(struct event_reader *reader)
{
	if (reader)
		ring_buffer__free(reader->ring);
	free(reader);
}

int event_reader_get_fd(const struct event_reader *reader)
{
	return ring_buffer__epoll_fd(reader->ring);
}

int event_reader_drain(struct event_reader *reader)
{
	return ring_buffer__consume(reader->ring);
}
