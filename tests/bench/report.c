/* SPDX-License-Identifier: GPL-2.0-only */
#include "report.h"

static void print_summary_json(FILE *out, const char *name, const struct summary *summary)
{
	fprintf(out,
		"\"%s\":{\"mean\":%.4f,\"p50\":%.4f,\"p90\":%.4f,\"p99\":%.4f,\"p999\":%.4f,"
		"\"max\":%.4f},",
		name, summary->mean_ms, summary->p50_ms, summary->p90_ms, summary->p99_ms,
		summary->p999_ms, summary->max_ms);
}

static void print_tally_json(FILE *out, struct tally *tally)
{
	size_t nr = tally_sort_workers(tally);

	fprintf(out,
		"\"ok\":%zu,\"errors\":{\"refused\":%zu,\"reset\":%zu,\"timeout\":%zu,\"other\":%zu},"
		"\"per_worker\":[",
		tally->nr_ok, tally->nr_refused, tally->nr_reset, tally->nr_timeouts,
		tally->nr_other);
	for (size_t i = 0; i < nr; i++)
		fprintf(out, "%s{\"worker\":%u,\"pid\":%d,\"requests\":%zu}", i ? "," : "",
			tally->workers[i].number, tally->workers[i].pid,
			tally->workers[i].nr_answers);
	fputs("]", out);
}

static void print_summary(FILE *out, const char *name, const struct summary *summary)
{
	fprintf(out, "%-8s %10.3f %10.3f %10.3f %10.3f %10.3f %10.3f\n", name, summary->mean_ms,
		summary->p50_ms, summary->p90_ms, summary->p99_ms, summary->p999_ms,
		summary->max_ms);
}

static void print_tally(FILE *out, struct tally *tally)
{
	size_t nr = tally_sort_workers(tally);

	fprintf(out, "%zu answered; %zu refused, %zu reset, %zu timed out, %zu other errors\n",
		tally->nr_ok, tally->nr_refused, tally->nr_reset, tally->nr_timeouts,
		tally->nr_other);
	for (size_t i = 0; i < nr; i++)
		fprintf(out, "worker %u (pid %d): %zu\n", tally->workers[i].number,
			tally->workers[i].pid, tally->workers[i].nr_answers);
}

static void report_open_json(FILE *out, const struct load_options *options,
			     const struct open_report *report, struct tally *tally)
{
	fprintf(out, "{\"requests\":%zu,\"rate\":%.3f,\"seconds\":%.3f,\"seed\":%llu,",
		report->nr_requests, options->rate, options->seconds,
		(unsigned long long)options->seed);
	print_summary_json(out, "latency_ms", &report->latency);
	if (report->has_ideal)
		print_summary_json(out, "ideal_ms", &report->ideal);
	else
		fputs("\"ideal_ms\":null,", out);
	print_summary_json(out, "lag_ms", &report->lag);
	print_tally_json(out, tally);
	fputs("}\n", out);
}

void report_open(FILE *out, const struct load_options *options, const struct open_report *report,
		 struct tally *tally)
{
	if (options->has_json) {
		report_open_json(out, options, report, tally);
		return;
	}
	fprintf(out, "%zu requests, %.0f per second\n\n", report->nr_requests, options->rate);
	fprintf(out, "%-8s %10s %10s %10s %10s %10s %10s\n", "ms", "mean", "p50", "p90", "p99",
		"p99.9", "max");
	print_summary(out, "latency", &report->latency);
	if (report->has_ideal)
		print_summary(out, "ideal", &report->ideal);
	print_summary(out, "lag", &report->lag);
	fputs("\n", out);
	print_tally(out, tally);
}

void report_rate(FILE *out, const struct load_options *options, double seconds, struct tally *tally)
{
	double per_second = (double)tally->nr_ok / seconds;

	if (options->has_json) {
		fprintf(out, "{\"connections_per_second\":%.1f,\"seconds\":%.3f,", per_second,
			seconds);
		print_tally_json(out, tally);
		fputs("}\n", out);
		return;
	}
	fprintf(out, "%.0f connections per second\n", per_second);
	print_tally(out, tally);
}

void report_hold(FILE *out, const struct load_options *options, struct tally *tally)
{
	fprintf(out, "held %zu\n", tally->nr_ok);
	if (options->has_json) {
		fputs("{", out);
		print_tally_json(out, tally);
		fputs("}\n", out);
	}
	fflush(out);
}
