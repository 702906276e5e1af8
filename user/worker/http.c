/* SPDX-License-Identifier: GPL-2.0-only */
#include "http.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A piece of the request, borrowed from the caller's buffer. */
struct text {
	const char *start;
	size_t nr_bytes;
};

static bool text_equals(struct text text, const char *word)
{
	return text.nr_bytes == strlen(word) && !memcmp(text.start, word, text.nr_bytes);
}

static bool text_equals_nocase(struct text text, const char *word)
{
	return text.nr_bytes == strlen(word) && !strncasecmp(text.start, word, text.nr_bytes);
}

/* Takes everything up to @separator off the front of @rest, and drops the separator. */
static struct text text_take_until(struct text *rest, const char *separator)
{
	size_t nr_separator_bytes = strlen(separator);
	const char *end = memmem(rest->start, rest->nr_bytes, separator, nr_separator_bytes);
	struct text head = *rest;

	if (!end) {
		rest->start += rest->nr_bytes;
		rest->nr_bytes = 0;
		return head;
	}
	head.nr_bytes = (size_t)(end - head.start);
	rest->start = end + nr_separator_bytes;
	rest->nr_bytes -= head.nr_bytes + nr_separator_bytes;
	return head;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct text text_trim(struct text text)
{
	while (text.nr_bytes && is_blank(text.start[0])) {
		text.start++;
		text.nr_bytes--;
	}
	while (text.nr_bytes && is_blank(text.start[text.nr_bytes - 1]))
		text.nr_bytes--;
	return text;
}

/* Removes @prefix from the front of @text, and says whether it was there. */
static bool text_skip_prefix(struct text *text, const char *prefix)
{
	size_t nr_bytes = strlen(prefix);

	if (text->nr_bytes < nr_bytes || memcmp(text->start, prefix, nr_bytes))
		return false;
	text->start += nr_bytes;
	text->nr_bytes -= nr_bytes;
	return true;
}

/*
 * Milliseconds with an optional fraction, such as 20 or 1.5. Digits below a nanosecond are read
 * and have no effect.
 */
static int parse_duration(struct text text, uint64_t *ret_ns)
{
	uint64_t unit_ns = 1000 * 1000;
	uint64_t sum_ns = 0;
	bool in_fraction = false;
	bool has_digit = false;

	for (size_t i = 0; i < text.nr_bytes; i++) {
		char c = text.start[i];

		if (c == '.' && !in_fraction) {
			in_fraction = true;
			continue;
		}
		if (c < '0' || c > '9')
			return -EBADMSG;
		has_digit = true;
		if (in_fraction) {
			unit_ns /= 10;
			sum_ns += (uint64_t)(c - '0') * unit_ns;
		} else {
			sum_ns = sum_ns * 10 + (uint64_t)(c - '0') * unit_ns;
		}
		if (sum_ns > HTTP_DURATION_NS_MAX)
			return -EBADMSG;
	}
	if (!has_digit)
		return -EBADMSG;
	*ret_ns = sum_ns;
	return 0;
}

static int parse_target(struct text target, struct http_request *request)
{
	struct text path = text_take_until(&target, "?");

	if (!path.nr_bytes || path.start[0] != '/')
		return -EBADMSG;
	if (text_equals(path, "/")) {
		request->action = HTTP_ANSWER;
	} else if (text_equals(path, "/hold")) {
		request->action = HTTP_HOLD;
	} else if (text_skip_prefix(&path, "/sleep/")) {
		request->action = HTTP_SLEEP;
		return parse_duration(path, &request->duration_ns);
	} else if (text_skip_prefix(&path, "/spin/")) {
		request->action = HTTP_SPIN;
		return parse_duration(path, &request->duration_ns);
	} else {
		request->action = HTTP_NOT_FOUND;
	}
	return 0;
}

static int parse_request_line(struct text line, struct http_request *request)
{
	struct text method = text_take_until(&line, " ");
	struct text target = text_take_until(&line, " ");

	if (text_equals(line, "HTTP/1.1"))
		request->keep_alive = true;
	else if (text_equals(line, "HTTP/1.0"))
		request->keep_alive = false;
	else
		return -EBADMSG;
	if (!method.nr_bytes)
		return -EBADMSG;
	if (!text_equals(method, "GET"))
		return -EOPNOTSUPP;
	return parse_target(target, request);
}

/* Connection is a list: "close", "keep-alive", "keep-alive, Upgrade". "close" wins. */
static void parse_connection(struct text list, struct http_request *request)
{
	bool has_close = false;

	while (list.nr_bytes) {
		struct text item = text_trim(text_take_until(&list, ","));

		if (text_equals_nocase(item, "close"))
			has_close = true;
		else if (text_equals_nocase(item, "keep-alive"))
			request->keep_alive = true;
	}
	if (has_close)
		request->keep_alive = false;
}

static bool announces_body(struct text name, struct text value)
{
	if (text_equals_nocase(name, "Content-Length"))
		return !text_equals(value, "0");
	return text_equals_nocase(name, "Transfer-Encoding");
}

static int parse_header(struct text line, struct http_request *request)
{
	const char *colon = memchr(line.start, ':', line.nr_bytes);
	struct text name, value;

	if (!colon)
		return -EBADMSG;
	value = line;
	name = text_take_until(&value, ":");
	value = text_trim(value);
	/* A blank around a name is how two servers come to read one request differently. */
	if (!name.nr_bytes || is_blank(name.start[0]) || is_blank(name.start[name.nr_bytes - 1]))
		return -EBADMSG;
	if (announces_body(name, value))
		return -EBADMSG;
	if (text_equals_nocase(name, "Connection"))
		parse_connection(value, request);
	return 0;
}

static int parse_head(struct text head, struct http_request *ret_request)
{
	struct http_request request = { 0 };
	int err = parse_request_line(text_take_until(&head, "\r\n"), &request);

	while (!err && head.nr_bytes)
		err = parse_header(text_take_until(&head, "\r\n"), &request);
	if (err)
		return err;
	if (request.action == HTTP_HOLD)
		request.keep_alive = true;
	*ret_request = request;
	return 0;
}

ssize_t http_parse_request(const char *data, size_t nr_bytes, struct http_request *ret_request)
{
	struct text rest = { data, nr_bytes };
	const char *end;
	int err;

	/* RFC 9112, 2.2: empty lines before a request are ignored. */
	while (text_skip_prefix(&rest, "\r\n"))
		;
	end = memmem(rest.start, rest.nr_bytes, "\r\n\r\n", 4);
	if (!end)
		return nr_bytes >= HTTP_REQUEST_BYTES_MAX ? -E2BIG : 0;
	if (end + 4 - data > HTTP_REQUEST_BYTES_MAX)
		return -E2BIG;
	rest.nr_bytes = (size_t)(end - rest.start);
	err = parse_head(rest, ret_request);
	return err ? err : end + 4 - data;
}

int http_status_of_error(int err)
{
	switch (err) {
	case -E2BIG:
		return 431;
	case -EOPNOTSUPP:
		return 405;
	default:
		return 400;
	}
}

static const char *status_reason(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 431:
		return "Request Header Fields Too Large";
	default:
		return "Bad Request";
	}
}

ssize_t http_format_answer(int status, bool keep_alive, const char *body, char *ret_answer,
			   size_t nr_bytes)
{
	int length = snprintf(ret_answer, nr_bytes,
			      "HTTP/1.1 %d %s\r\n"
			      "Content-Type: text/plain\r\n"
			      "Content-Length: %zu\r\n"
			      "%s"
			      "Connection: %s\r\n"
			      "\r\n"
			      "%s",
			      status, status_reason(status), strlen(body),
			      status == 405 ? "Allow: GET\r\n" : "",
			      keep_alive ? "keep-alive" : "close", body);

	return length < 0 || (size_t)length >= nr_bytes ? -ENOSPC : length;
}
