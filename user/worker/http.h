/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * http: reads HTTP/1.1 requests out of a buffer and writes answers into one. Pure: no I/O, no
 * state between calls, no allocation, so that every odd request is a line in a test table.
 *
 * It understands GET on four paths: "/", "/hold", "/sleep/MS" and "/spin/MS". A request with a
 * body is refused, because skipping a body wrongly would turn its bytes into requests.
 */
#ifndef WORKER_HTTP_H
#define WORKER_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The longest request, line and headers together: what nginx and Apache accept by default. */
#define HTTP_REQUEST_BYTES_MAX 8192

/* Enough for any answer that http_format_answer() makes from a body of HTTP_BODY_BYTES_MAX. */
#define HTTP_ANSWER_BYTES_MAX 256
#define HTTP_BODY_BYTES_MAX 64

/* The longest /sleep or /spin: one hour. More is a slip of the pen, and would look like a hang. */
#define HTTP_DURATION_NS_MAX (3600ULL * 1000 * 1000 * 1000)

enum http_action {
	HTTP_ANSWER,
	HTTP_HOLD,
	HTTP_SLEEP,
	HTTP_SPIN,
	HTTP_NOT_FOUND,
};

struct http_request {
	enum http_action action;
	uint64_t duration_ns; /* Of HTTP_SLEEP and HTTP_SPIN, otherwise 0. */
	bool keep_alive;
};

/*
 * Reads the first request of @data. Returns the number of bytes it takes up; 0 when it is not
 * complete yet; -EBADMSG when it is malformed (400), -EOPNOTSUPP when its method is not GET
 * (405), -E2BIG when it is longer than HTTP_REQUEST_BYTES_MAX (431).
 */
ssize_t http_parse_request(const char *data, size_t nr_bytes, struct http_request *ret_request);

/* The status that answers an error of http_parse_request(). */
int http_status_of_error(int err);

/* Writes a whole answer. Returns its length, or -ENOSPC when it does not fit into @nr_bytes. */
ssize_t http_format_answer(int status, bool keep_alive, const char *body, char *ret_answer,
			   size_t nr_bytes);

#endif
