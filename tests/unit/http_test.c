/* SPDX-License-Identifier: GPL-2.0-only */
#include "worker/connection.h"
#include "worker/http.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MSEC 1000000ULL

struct good_case {
	const char *name;
	const char *data;
	struct http_request expected;
};

static const struct good_case good_cases[] = {
	{ "the plain answer", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", { HTTP_ANSWER, 0, true } },
	{ "no header at all", "GET / HTTP/1.1\r\n\r\n", { HTTP_ANSWER, 0, true } },
	{ "empty lines before it", "\r\n\r\nGET / HTTP/1.1\r\n\r\n", { HTTP_ANSWER, 0, true } },
	{ "a query", "GET /?a=b HTTP/1.1\r\n\r\n", { HTTP_ANSWER, 0, true } },
	{ "HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", { HTTP_ANSWER, 0, false } },
	{ "HTTP/1.0 that stays",
	  "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
	  { HTTP_ANSWER, 0, true } },
	{ "close", "GET / HTTP/1.1\r\nConnection: close\r\n\r\n", { HTTP_ANSWER, 0, false } },
	{ "close in any case",
	  "GET / HTTP/1.1\r\ncONNECTION:CLOSE \r\n\r\n",
	  { HTTP_ANSWER, 0, false } },
	{ "close in a list",
	  "GET / HTTP/1.1\r\nConnection: close , keep-alive\r\n\r\n",
	  { HTTP_ANSWER, 0, false } },
	{ "an empty list", "GET / HTTP/1.1\r\nConnection: ,,\r\n\r\n", { HTTP_ANSWER, 0, true } },
	{ "hold", "GET /hold HTTP/1.1\r\n\r\n", { HTTP_HOLD, 0, true } },
	{ "hold does not close",
	  "GET /hold HTTP/1.1\r\nConnection: close\r\n\r\n",
	  { HTTP_HOLD, 0, true } },
	{ "sleep", "GET /sleep/20 HTTP/1.1\r\n\r\n", { HTTP_SLEEP, 20 * MSEC, true } },
	{ "sleep a fraction", "GET /sleep/1.5 HTTP/1.1\r\n\r\n", { HTTP_SLEEP, 1500000, true } },
	{ "sleep one ns", "GET /sleep/0.000001 HTTP/1.1\r\n\r\n", { HTTP_SLEEP, 1, true } },
	{ "sleep below a ns", "GET /sleep/0.0000009 HTTP/1.1\r\n\r\n", { HTTP_SLEEP, 0, true } },
	{ "sleep without an integer part",
	  "GET /sleep/.5 HTTP/1.1\r\n\r\n",
	  { HTTP_SLEEP, 500000, true } },
	{ "the longest sleep",
	  "GET /sleep/3600000 HTTP/1.1\r\n\r\n",
	  { HTTP_SLEEP, HTTP_DURATION_NS_MAX, true } },
	{ "spin", "GET /spin/3 HTTP/1.1\r\n\r\n", { HTTP_SPIN, 3 * MSEC, true } },
	{ "an unknown path", "GET /nothing HTTP/1.1\r\n\r\n", { HTTP_NOT_FOUND, 0, true } },
	{ "an empty body", "GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", { HTTP_ANSWER, 0, true } },
};

Test(http, good_requests_are_read_as_a_whole)
{
	for (size_t i = 0; i < COUNT(good_cases); i++) {
		const struct good_case *good = &good_cases[i];
		size_t length = strlen(good->data);
		struct http_request request;

		cr_assert_eq(http_parse_request(good->data, length, &request), (ssize_t)length,
			     "%s", good->name);
		cr_expect_eq(request.action, good->expected.action, "%s", good->name);
		cr_expect_eq(request.duration_ns, good->expected.duration_ns, "%s", good->name);
		cr_expect_eq(request.keep_alive, good->expected.keep_alive, "%s", good->name);
	}
}

struct bad_case {
	const char *name;
	const char *data;
	int err;
	int status;
};

static const struct bad_case bad_cases[] = {
	{ "not HTTP", "hello\r\n\r\n", -EBADMSG, 400 },
	{ "no version", "GET /\r\n\r\n", -EBADMSG, 400 },
	{ "another version", "GET / HTTP/2.0\r\n\r\n", -EBADMSG, 400 },
	{ "two blanks", "GET  / HTTP/1.1\r\n\r\n", -EBADMSG, 400 },
	{ "no method", " / HTTP/1.1\r\n\r\n", -EBADMSG, 400 },
	{ "a target without slash", "GET x HTTP/1.1\r\n\r\n", -EBADMSG, 400 },
	{ "another method", "POST / HTTP/1.1\r\n\r\n", -EOPNOTSUPP, 405 },
	{ "a method in small letters", "get / HTTP/1.1\r\n\r\n", -EOPNOTSUPP, 405 },
	{ "a header without colon", "GET / HTTP/1.1\r\nHost\r\n\r\n", -EBADMSG, 400 },
	{ "a header without name", "GET / HTTP/1.1\r\n: a\r\n\r\n", -EBADMSG, 400 },
	{ "a blank before the colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", -EBADMSG, 400 },
	{ "a folded header", "GET / HTTP/1.1\r\nA: b\r\n c: d\r\n\r\n", -EBADMSG, 400 },
	{ "a body", "GET / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", -EBADMSG, 400 },
	{ "a chunked body", "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", -EBADMSG, 400 },
	{ "sleep without a number", "GET /sleep/ HTTP/1.1\r\n\r\n", -EBADMSG, 400 },
	{ "sleep for a word", "GET /sleep/x HTTP/1.1\r\n\r\n", -EBADMSG, 400 },
	{ "sleep for a point", "GET /sleep/. HTTP/1.1\r\n\r\n", -EBADMSG, 400 },
	{ "sleep for two points", "GET /sleep/1.2.3 HTTP/1.1\r\n\r\n", -EBADMSG, 400 },
	{ "a negative sleep", "GET /sleep/-1 HTTP/1.1\r\n\r\n", -EBADMSG, 400 },
	{ "too long a sleep", "GET /sleep/3600000.1 HTTP/1.1\r\n\r\n", -EBADMSG, 400 },
	{ "a sleep beyond 64 bits", "GET /spin/99999999999999999999999 HTTP/1.1\r\n\r\n", -EBADMSG,
	  400 },
};

Test(http, bad_requests_are_refused_with_their_status)
{
	for (size_t i = 0; i < COUNT(bad_cases); i++) {
		const struct bad_case *bad = &bad_cases[i];
		struct http_request request = { .duration_ns = 42 };
		ssize_t err = http_parse_request(bad->data, strlen(bad->data), &request);

		cr_expect_eq(err, bad->err, "%s: %zd", bad->name, err);
		cr_expect_eq(http_status_of_error(bad->err), bad->status, "%s", bad->name);
		cr_expect_eq(request.duration_ns, 42, "%s touched its output", bad->name);
	}
}

Test(http, a_request_is_incomplete_until_its_last_byte)
{
	static const char data[] =
		"GET /sleep/1.5 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
	struct http_request request;

	for (size_t nr = 0; nr < sizeof(data) - 1; nr++)
		cr_expect_eq(http_parse_request(data, nr, &request), 0, "%zu bytes", nr);
}

Test(http, the_second_of_two_requests_is_left_for_the_next_call)
{
	static const char data[] = "GET /hold HTTP/1.1\r\n\r\nGET /spin/2 HTTP/1.0\r\n\r\n";
	struct http_request request;
	ssize_t first = http_parse_request(data, sizeof(data) - 1, &request);
	ssize_t second;

	cr_assert_eq(first, (ssize_t)strlen("GET /hold HTTP/1.1\r\n\r\n"));
	cr_expect_eq(request.action, HTTP_HOLD);
	second = http_parse_request(data + first, sizeof(data) - 1 - (size_t)first, &request);
	cr_assert_eq(first + second, (ssize_t)sizeof(data) - 1);
	cr_expect_eq(request.action, HTTP_SPIN);
}

/* A request of exactly @nr_bytes, filled up by one header. */
static void make_long_request(char *ret_data, size_t nr_bytes)
{
	static const char head[] = "GET / HTTP/1.1\r\nX: ";
	static const char end[] = "\r\n\r\n";

	memset(ret_data, 'x', nr_bytes);
	memcpy(ret_data, head, sizeof(head) - 1);
	memcpy(ret_data + nr_bytes - (sizeof(end) - 1), end, sizeof(end) - 1);
}

Test(http, a_request_may_be_as_long_as_the_limit_and_no_longer)
{
	char data[HTTP_REQUEST_BYTES_MAX + 1];
	struct http_request request;

	make_long_request(data, HTTP_REQUEST_BYTES_MAX);
	cr_expect_eq(http_parse_request(data, HTTP_REQUEST_BYTES_MAX, &request),
		     HTTP_REQUEST_BYTES_MAX);
	make_long_request(data, HTTP_REQUEST_BYTES_MAX + 1);
	cr_expect_eq(http_parse_request(data, HTTP_REQUEST_BYTES_MAX + 1, &request), -E2BIG);
	cr_expect_eq(http_parse_request(data, HTTP_REQUEST_BYTES_MAX, &request), -E2BIG);
	cr_expect_eq(http_parse_request(data, HTTP_REQUEST_BYTES_MAX - 1, &request), 0);
	cr_expect_eq(http_status_of_error(-E2BIG), 431);
}

Test(http, any_bytes_are_read_without_harm)
{
	static const char alphabet[] = "GET /sleep.:\r\n\t 1HTP\0\xff";
	char data[64];
	struct http_request request;

	srandom(1);
	for (int round = 0; round < 200000; round++) {
		size_t nr = (size_t)random() % sizeof(data);
		ssize_t length;

		for (size_t i = 0; i < nr; i++)
			data[i] = alphabet[(size_t)random() % (sizeof(alphabet) - 1)];
		length = http_parse_request(data, nr, &request);
		cr_assert(length <= (ssize_t)nr, "%zd of %zu bytes", length, nr);
	}
}

Test(http, an_answer_has_its_length_and_says_whether_it_is_the_last)
{
	char answer[HTTP_ANSWER_BYTES_MAX];

	cr_assert_gt(http_format_answer(200, true, "hello\n", answer, sizeof(answer)), 0);
	cr_expect_str_eq(answer, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
				 "Content-Length: 6\r\nConnection: keep-alive\r\n\r\nhello\n");
	cr_assert_gt(http_format_answer(405, false, "", answer, sizeof(answer)), 0);
	cr_expect_str_eq(answer, "HTTP/1.1 405 Method Not Allowed\r\nContent-Type: text/plain\r\n"
				 "Content-Length: 0\r\nAllow: GET\r\nConnection: close\r\n\r\n");
}

Test(http, an_answer_that_does_not_fit_is_refused)
{
	char answer[HTTP_ANSWER_BYTES_MAX];
	char body[HTTP_BODY_BYTES_MAX];
	ssize_t length = http_format_answer(200, true, "x", answer, sizeof(answer));

	cr_expect_eq(http_format_answer(200, true, "x", answer, (size_t)length), -ENOSPC);
	cr_expect_eq(http_format_answer(200, true, "x", answer, (size_t)length + 1), length);

	memset(body, 'b', sizeof(body) - 1);
	body[sizeof(body) - 1] = '\0';
	cr_expect_gt(http_format_answer(431, true, body, answer, sizeof(answer)), 0,
		     "the longest status and body fit into HTTP_ANSWER_BYTES_MAX");
}

/* A connection whose other end is in the hands of the test. */
struct fixture {
	struct connection connection;
	struct answers answers;
	int client_fd;
};

static int fixture_init(struct fixture *fixture)
{
	int ends[2];

	fixture->connection.fd = -1;
	fixture->client_fd = -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends))
		return -errno;
	connection_init(&fixture->connection, ends[0]);
	answers_init(&fixture->answers, 3, 1234);
	fixture->client_fd = ends[1];
	return 0;
}

static void fixture_done(struct fixture *fixture)
{
	connection_done(&fixture->connection);
	close(fixture->client_fd);
}

static enum connection_wait client_sends(struct fixture *fixture, const char *data)
{
	if (write(fixture->client_fd, data, strlen(data)) != (ssize_t)strlen(data))
		abort();
	return connection_advance(&fixture->connection, &fixture->answers);
}

/* How many whole answers with this status line the client can read now. */
static unsigned int client_counts(struct fixture *fixture, const char *status_line)
{
	char data[16384];
	ssize_t nr = read(fixture->client_fd, data, sizeof(data) - 1);
	unsigned int nr_answers = 0;

	data[nr > 0 ? nr : 0] = '\0';
	for (char *at = data; (at = strstr(at, status_line)); at++)
		nr_answers++;
	return nr_answers;
}

static const char plain_request[] = "GET / HTTP/1.1\r\n\r\n";

/* The same request @nr times, as text; @ret_data has a byte more than that. */
static void repeat_request(char *ret_data, unsigned int nr)
{
	size_t length = sizeof(plain_request) - 1;

	for (unsigned int i = 0; i < nr; i++)
		memcpy(ret_data + i * length, plain_request, length);
	ret_data[nr * length] = '\0';
}

Test(connection, a_request_split_over_two_reads_is_answered_once)
{
	struct fixture fixture;

	cr_assert_eq(fixture_init(&fixture), 0);
	cr_expect_eq(client_sends(&fixture, "GET / HTT"), CONNECTION_READ);
	cr_expect_eq(client_counts(&fixture, "HTTP/1.1 200"), 0);
	cr_expect_eq(client_sends(&fixture, "P/1.1\r\n\r\n"), CONNECTION_READ);
	cr_expect_eq(client_counts(&fixture, "HTTP/1.1 200"), 1);
	fixture_done(&fixture);
}

Test(connection, pipelined_requests_are_all_answered)
{
	char requests[50 * sizeof(plain_request)];
	struct fixture fixture;

	cr_assert_eq(fixture_init(&fixture), 0);
	repeat_request(requests, 50);
	cr_expect_eq(client_sends(&fixture, requests), CONNECTION_READ);
	cr_expect_eq(client_counts(&fixture, "HTTP/1.1 200"), 50);
	fixture_done(&fixture);
}

Test(connection, nothing_is_answered_after_close)
{
	struct fixture fixture;

	cr_assert_eq(fixture_init(&fixture), 0);
	cr_expect_eq(client_sends(&fixture, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n"
					    "GET / HTTP/1.1\r\n\r\n"),
		     CONNECTION_END);
	cr_expect_eq(client_counts(&fixture, "HTTP/1.1 200"), 1);
	fixture_done(&fixture);
}

Test(connection, a_refused_request_is_answered_and_the_rest_is_discarded)
{
	struct fixture fixture;

	cr_assert_eq(fixture_init(&fixture), 0);
	cr_expect_eq(client_sends(&fixture, "nonsense\r\n\r\n"), CONNECTION_READ);
	cr_expect_eq(client_counts(&fixture, "HTTP/1.1 400"), 1);
	cr_expect_eq(client_sends(&fixture, plain_request), CONNECTION_READ);
	cr_expect_eq(client_counts(&fixture, "HTTP/1.1"), 0);
	shutdown(fixture.client_fd, SHUT_WR);
	cr_expect_eq(connection_advance(&fixture.connection, &fixture.answers), CONNECTION_END);
	fixture_done(&fixture);
}

Test(connection, a_client_that_does_not_read_is_waited_for_and_loses_nothing)
{
	char requests[400 * sizeof(plain_request)];
	struct fixture fixture;
	unsigned int nr_answers = 0;
	int smallest = 1;

	cr_assert_eq(fixture_init(&fixture), 0);
	/* The kernel raises this to its minimum, which a few dozen answers fill. */
	setsockopt(fixture.connection.fd, SOL_SOCKET, SO_SNDBUF, &smallest, sizeof(smallest));
	repeat_request(requests, 400);
	cr_assert_eq(client_sends(&fixture, requests), CONNECTION_WRITE);
	for (int round = 0; round < 400; round++) {
		nr_answers += client_counts(&fixture, "HTTP/1.1 200");
		if (fixture.connection.waits_for != CONNECTION_WRITE)
			break;
		connection_advance(&fixture.connection, &fixture.answers);
	}
	nr_answers += client_counts(&fixture, "HTTP/1.1 200");
	cr_expect_eq(nr_answers, 400, "%u answers", nr_answers);
	cr_expect_eq(fixture.connection.waits_for, CONNECTION_READ);
	fixture_done(&fixture);
}
