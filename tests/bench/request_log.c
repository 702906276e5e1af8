/* SPDX-License-Identifier: GPL-2.0-only */
#include "request_log.h"

#include "tally.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <time.h>

#define NSEC_PER_SEC 1000000000ULL

static const char *const outcome_names[NR_TALLY_OUTCOMES] = {
	[TALLY_OK] = "ok",	     [TALLY_REFUSED] = "refused", [TALLY_RESET] = "reset",
	[TALLY_TIMEOUT] = "timeout", [TALLY_OTHER] = "other",
};

static uint64_t epoch_ns(void)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec - now_ns();
}

int request_log_open(struct request_log *log, const char *path)
{
	*log = (struct request_log){ .epoch_ns = epoch_ns() };
	if (!path)
		return 0;
	log->file = fopen(path, "we");
	if (!log->file)
		return -errno;
	fputs("begun,latency_ms,outcome,worker,pid,source\n", log->file);
	return 0;
}

void request_log_begin(const struct request_log *log, struct exchange *exchange)
{
	exchange->nr_source_bytes = 0;
	if (!log->file || exchange->fd < 0)
		return;
	exchange->nr_source_bytes = sizeof(exchange->source);
	if (getsockname(exchange->fd, (struct sockaddr *)&exchange->source,
			&exchange->nr_source_bytes))
		exchange->nr_source_bytes = 0;
}

static void print_source(FILE *file, const struct exchange *exchange)
{
	bool is_v6 = exchange->source.ss_family == AF_INET6;
	char address[64], port[8];

	if (!exchange->nr_source_bytes ||
	    getnameinfo((const struct sockaddr *)&exchange->source, exchange->nr_source_bytes,
			address, sizeof(address), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		return;
	fprintf(file, is_v6 ? "[%s]:%s" : "%s:%s", address, port);
}

void request_log_end(const struct request_log *log, const struct exchange *exchange, int err)
{
	uint64_t begun_ns = log->epoch_ns + exchange->begun_ns;

	if (!log->file)
		return;
	fprintf(log->file, "%llu.%06llu,%.3f,%s,", (unsigned long long)(begun_ns / NSEC_PER_SEC),
		(unsigned long long)(begun_ns % NSEC_PER_SEC / 1000),
		(double)(now_ns() - exchange->begun_ns) / 1e6,
		outcome_names[tally_outcome_of(err)]);
	if (err)
		fputs(",,", log->file);
	else
		fprintf(log->file, "%u,%d,", exchange->facts.worker, exchange->facts.pid);
	print_source(log->file, exchange);
	fputc('\n', log->file);
}

int request_log_close(struct request_log *log)
{
	FILE *file = log->file;
	bool has_failed;

	if (!file)
		return 0;
	log->file = NULL;
	has_failed = ferror(file);
	return fclose(file) || has_failed ? -EIO : 0;
}
