/* SPDX-License-Identifier: GPL-2.0-only */
#include "daemon/metrics.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/loopback.h"
#include "steering/status.h"

#include <errno.h>
#include <microhttpd.h>
#include <string.h>

/* More than scrapers and people with curl need at once. */
#define CONNECTIONS_MAX 16

/* Silence after which a connection is closed, in seconds. A scraper connects again. */
#define SILENCE_MAX 5U

/* Of one connection, for the request and the head of the answer. Longer requests are refused. */
#define CONNECTION_BYTES ((size_t)8192)

/* One look at the kernel takes milliseconds and serves everybody for so long. */
#define FRESH_NS 200000000

#define TEXT_TYPE "text/plain; charset=utf-8"
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* What can be asked for, and what was answered last. */
struct page {
	const char *path;
	const char *type;
	/* Writes the body and returns the code. What fails is written too. */
	unsigned int (*write)(struct metrics *metrics, FILE *out);
	struct MHD_Response *response; /* owned; NULL before the first */
	unsigned int code;
	uint64_t written_ns;
};

#define NR_PAGES 2

struct metrics {
	const struct daemon_options *options; /* borrowed */
	struct keeper *keeper; /* borrowed; NULL until metrics_serve() */
	struct MHD_Daemon *server; /* owned */
	uint32_t port; /* the one that it got */
	sd_event_source *request; /* owned */
	sd_event_source *silence; /* owned timer, off while nobody is connected */
	struct page pages[NR_PAGES];
};

static unsigned int write_metrics(struct metrics *metrics, FILE *out)
{
	struct status status CLEANUP(status_done) = {};
	struct failure failure = {};

	if (status_read_with(keeper_get_inspector(metrics->keeper), NULL, &status, &failure)) {
		fprintf(out, "%s\n", failure.message);
		return MHD_HTTP_INTERNAL_SERVER_ERROR;
	}
	metrics->options->print_metrics(&status, out);
	return MHD_HTTP_OK;
}

static unsigned int write_health(struct metrics *metrics, FILE *out)
{
	struct failure failure = {};
	size_t nr_steered, nr_missed;

	if (keeper_count(metrics->keeper, &nr_steered, &nr_missed, &failure)) {
		fprintf(out, "%s\n", failure.message);
		return MHD_HTTP_SERVICE_UNAVAILABLE;
	}
	fprintf(out, "%s\n%zu of %zu groups steered\n", nr_missed ? "not steered" : "ok",
		nr_steered, nr_steered + nr_missed);
	return nr_missed ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK;
}

static const struct page pages[NR_PAGES] = {
	{ .path = "/metrics", .type = METRICS_TYPE, .write = write_metrics },
	{ .path = "/healthz", .type = TEXT_TYPE, .write = write_health },
};

static void page_done(struct page *page)
{
	if (page->response)
		MHD_destroy_response(page->response);
	page->response = NULL;
}

/* Takes the text. NULL without memory. */
static struct MHD_Response *response_new(char *text, size_t size, const char *type)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);

	if (!response)
		free(text);
	else
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	return response;
}

static int page_write(struct page *page, struct metrics *metrics)
{
	char *text CLEANUP(cleanup_free) = NULL;
	unsigned int code;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool is_whole;

	if (!out)
		return -ENOMEM;
	code = page->write(metrics, out);
	is_whole = !ferror(out);
	if (fclose(out) || !is_whole)
		return -ENOMEM;
	page_done(page);
	page->response =
		response_new(TAKE_PTR(text), size, code == MHD_HTTP_OK ? page->type : TEXT_TYPE);
	page->code = code;
	page->written_ns = clock_now_ns();
	return page->response ? 0 : -ENOMEM;
}

static enum MHD_Result answer_page(struct page *page, struct metrics *metrics,
				   struct MHD_Connection *connection)
{
	bool is_fresh = page->response && clock_now_ns() - page->written_ns < FRESH_NS;

	if (!is_fresh && page_write(page, metrics))
		return MHD_NO;
	return MHD_queue_response(connection, page->code, page->response);
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned int code,
			      const char *sentence)
{
	char *text = strdup(sentence);
	struct MHD_Response *response;
	enum MHD_Result result;

	if (!text)
		return MHD_NO;
	response = response_new(text, strlen(text), TEXT_TYPE);
	if (!response)
		return MHD_NO;
	if (code == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	result = MHD_queue_response(connection, code, response);
	MHD_destroy_response(response);
	return result;
}

/* Called when the head of a request is there, for each part of its body, and at its end. */
static enum MHD_Result on_request(void *argument, struct MHD_Connection *connection,
				  const char *path, const char *method, const char *version,
				  const char *body, size_t *body_size, void **state)
{
	struct metrics *metrics = argument;
	size_t i;

	(void)version;
	(void)body;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
			      "there is nothing to do here but to look: GET or HEAD\n");
	if (!*state) {
		*state = metrics;
		return MHD_YES;
	}
	/* Nobody who looks brings a body along: it is thrown away, and the connection closed. */
	if (*body_size) {
		*body_size = 0;
		return MHD_NO;
	}
	for (i = 0; i < NR_PAGES; i++)
		if (!strcmp(path, metrics->pages[i].path))
			return answer_page(&metrics->pages[i], metrics, connection);
	return refuse(connection, MHD_HTTP_NOT_FOUND, "there is /metrics and /healthz\n");
}

static unsigned int nr_connections(const struct metrics *metrics)
{
	return MHD_get_daemon_info(metrics->server, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)
		->num_connections;
}

/* Does what can be done without waiting, and finds out when there is more. */
static int metrics_run(struct metrics *metrics)
{
	MHD_UNSIGNED_LONG_LONG left_ms;
	unsigned int nr_before;
	int err;

	/*
	 * A server that is full does not listen. A run that ends connections leaves it to the next
	 * one to listen again, and without connections nothing else would cause that.
	 */
	do {
		nr_before = nr_connections(metrics);
		MHD_run(metrics->server);
	} while (nr_connections(metrics) < nr_before);
	if (MHD_get_timeout(metrics->server, &left_ms) != MHD_YES)
		return sd_event_source_set_enabled(metrics->silence, SD_EVENT_OFF);
	err = sd_event_source_set_time_relative(metrics->silence, left_ms * 1000);
	return err < 0 ? err : sd_event_source_set_enabled(metrics->silence, SD_EVENT_ONESHOT);
}

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *argument)
{
	(void)source;
	(void)fd;
	(void)revents;
	return metrics_run(argument);
}

static int on_silence(sd_event_source *source, uint64_t usec, void *argument)
{
	(void)source;
	(void)usec;
	return metrics_run(argument);
}

void metrics_free(struct metrics *metrics)
{
	size_t i;

	if (!metrics)
		return;
	sd_event_source_disable_unref(metrics->request);
	sd_event_source_disable_unref(metrics->silence);
	if (metrics->server)
		MHD_stop_daemon(metrics->server);
	for (i = 0; i < NR_PAGES; i++)
		page_done(&metrics->pages[i]);
	free(metrics);
}

static void cleanup_metrics(struct metrics **metrics)
{
	metrics_free(*metrics);
}

/* The server takes the listening socket, also where it fails: then the process ends anyway. */
static int start_server(struct metrics *metrics, int listener)
{
	metrics->server = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, metrics,
					   MHD_OPTION_LISTEN_SOCKET, listener,
					   MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
					   MHD_OPTION_CONNECTION_TIMEOUT, SILENCE_MAX,
					   MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_BYTES,
					   MHD_OPTION_END);
	return metrics->server ? 0 : -ENOMEM;
}

static void address_text(const struct loopback *address, uint32_t port, char *ret_text)
{
	text_of_address(address->family, address->address, port, ret_text);
}

int metrics_new(const struct daemon_options *options, struct metrics **ret_metrics,
		struct failure *failure)
{
	struct metrics *metrics CLEANUP(cleanup_metrics) = calloc(1, sizeof(*metrics));
	char text[ADDRESS_TEXT_SIZE];
	int listener, err;

	if (!metrics)
		return failure_set(failure, EXIT_FAILED, ENOMEM, "out of memory");
	metrics->options = options;
	memcpy(metrics->pages, pages, sizeof(pages));
	address_text(options->metrics, options->metrics->port, text);
	err = loopback_listen(options->metrics, &listener, &metrics->port);
	if (err)
		return failure_set(failure, EXIT_FAILED, -err,
				   "cannot serve metrics on %s: %s; nothing was attached; port 0 "
				   "takes any that is free",
				   text, strerror(-err));
	err = start_server(metrics, listener);
	if (err)
		return failure_set(failure, EXIT_FAILED, -err,
				   "cannot serve metrics on %s: %s; nothing was attached", text,
				   strerror(-err));
	*ret_metrics = TAKE_PTR(metrics);
	return 0;
}

static int add_sources(struct metrics *metrics, sd_event *loop)
{
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(metrics->server, MHD_DAEMON_INFO_EPOLL_FD);
	int err = info ? 0 : -EOPNOTSUPP;

	if (!err)
		err = sd_event_add_io(loop, &metrics->request, info->epoll_fd, EPOLLIN, on_readable,
				      metrics);
	/* Accurate to 1 ms: by default it could be 250 ms late, and a client wait for as long. */
	if (err >= 0)
		err = sd_event_add_time(loop, &metrics->silence, CLOCK_MONOTONIC, UINT64_MAX, 1000,
					on_silence, metrics);
	if (err >= 0)
		err = sd_event_source_set_priority(metrics->request, SD_EVENT_PRIORITY_IDLE);
	if (err >= 0)
		err = sd_event_source_set_priority(metrics->silence, SD_EVENT_PRIORITY_IDLE);
	return err;
}

int metrics_serve(struct metrics *metrics, sd_event *loop, struct keeper *keeper)
{
	char text[ADDRESS_TEXT_SIZE];
	int err;

	metrics->keeper = keeper;
	err = add_sources(metrics, loop);
	if (err >= 0)
		err = metrics_run(metrics);
	if (err < 0)
		return err;
	address_text(metrics->options->metrics, metrics->port, text);
	log_line(LOG_PRIORITY_NOTICE, "metrics on http://%s/metrics", text);
	return 0;
}
