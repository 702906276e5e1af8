/* SPDX-License-Identifier: GPL-2.0-only */
#include "answer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Longer answers do not come from epoll-worker. */
#define BODY_BYTES_MAX 256

ssize_t answer_parse(const char *data, size_t nr_bytes, struct answer_facts *ret_facts)
{
	const char *length_header = strstr(data, "\r\nContent-Length: ");
	const char *head_end = strstr(data, "\r\n\r\n");
	struct answer_facts facts = { 0 };
	size_t nr_body_bytes, nr_head_bytes;

	if (!head_end)
		return 0;
	if (sscanf(data, "HTTP/1.1 %3u ", &facts.status) != 1)
		return -EBADMSG;
	if (!length_header || length_header > head_end ||
	    sscanf(length_header, " Content-Length: %4zu", &nr_body_bytes) != 1 ||
	    nr_body_bytes > BODY_BYTES_MAX)
		return -EBADMSG;
	nr_head_bytes = (size_t)(head_end + 4 - data);
	if (nr_bytes < nr_head_bytes + nr_body_bytes)
		return 0;
	if (sscanf(head_end, " worker %u pid %d", &facts.worker, &facts.pid) != 2)
		facts.pid = 0;
	*ret_facts = facts;
	return (ssize_t)(nr_head_bytes + nr_body_bytes);
}
