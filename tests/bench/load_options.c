/* SPDX-License-Identifier: GPL-2.0-only */
#include "load_options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS_MAX 3600
#define CONNECTIONS_MAX 1000000

/* Of more sources than one, so that two runs after each other meet few ports in TIME_WAIT. */
#define SOURCES_DEFAULT 8
#define SOURCES_NOT_GIVEN UINT_MAX

enum {
	OPT_TARGET = 256,
	OPT_MODE,
	OPT_RATE,
	OPT_LOAD,
	OPT_WORKERS,
	OPT_MIX,
	OPT_SECONDS,
	OPT_SEED,
	OPT_TIMEOUT,
	OPT_CONNECTIONS,
	OPT_PARALLEL,
	OPT_SOURCES,
	OPT_PROGRESS,
	OPT_JSON,
	OPT_LOG,
};

static const struct option long_options[] = {
	{ "target", required_argument, NULL, OPT_TARGET },
	{ "mode", required_argument, NULL, OPT_MODE },
	{ "rate", required_argument, NULL, OPT_RATE },
	{ "load", required_argument, NULL, OPT_LOAD },
	{ "workers", required_argument, NULL, OPT_WORKERS },
	{ "mix", required_argument, NULL, OPT_MIX },
	{ "seconds", required_argument, NULL, OPT_SECONDS },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "connections", required_argument, NULL, OPT_CONNECTIONS },
	{ "parallel", required_argument, NULL, OPT_PARALLEL },
	{ "source-addresses", required_argument, NULL, OPT_SOURCES },
	{ "progress", no_argument, NULL, OPT_PROGRESS },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "log", required_argument, NULL, OPT_LOG },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static const char help_text[] =
	"Usage: load --target ADDR:PORT [OPTION]...\n"
	"\n"
	"Puts a load on epoll-worker, one request per connection, and measures it.\n"
	"\n"
	"      --target ADDR:PORT   where the server listens; [V6]:PORT for IPv6\n"
	"      --mode open          arrivals at random instants that do not wait for answers; the\n"
	"                           time to an answer counts from the instant that was planned,\n"
	"                           even when the server or this program is late (default)\n"
	"      --mode rate          a fixed number of connections outstanding: how many per second?\n"
	"      --mode hold          opens connections and keeps them until SIGTERM, or until\n"
	"                           standard input ends if that is a pipe or a terminal\n"
	"\n"
	"Which load:\n"
	"      --mix LIST           KIND:MS:WEIGHT,... with KIND sleep, spin or answer\n"
	"                           (default answer:0:1)\n"
	"      --rate N             arrivals per second, or\n"
	"      --load FRACTION      the share of the workers' time that the mix takes up, such as\n"
	"                           0.7; needs --workers\n"
	"      --workers N          workers of the server; with it, the result says how long an\n"
	"                           ideal server with one queue for all workers would have taken\n"
	"      --seconds N          length of the run (default 10); SIGTERM ends the arrivals earlier\n"
	"      --seed N             the same seed gives the same arrivals and requests (default 1)\n"
	"      --timeout MS         when to give a request up (default 10000)\n"
	"      --connections N      how many to hold (default 100)\n"
	"      --parallel N         how many are outstanding in modes rate and hold (default 1)\n"
	"      --source-addresses N spread over 127.0.0.1 to 127.0.0.N; 0 leaves the address to\n"
	"                           the kernel (default 8 for targets in 127.0.0.0/8, otherwise 0)\n"
	"\n"
	"What to show:\n"
	"      --progress           one line on standard error, if it is a terminal\n"
	"      --json               the result as JSON\n"
	"      --log FILE           each request as a line of CSV: when it began (planned, in seconds\n"
	"                           since 1970), latency_ms, outcome (ok, refused, reset, timeout,\n"
	"                           other), worker and pid that answered, source address; mode open\n"
	"      --help               show this text\n"
	"\n"
	"Example:\n"
	"  load --target 127.0.0.1:8080 --mix sleep:1:95,sleep:20:5 --load 0.7 --workers 4\n";

static int usage_error(const char *option, const char *problem)
{
	fprintf(stderr, "load: %s %s; see load --help\n", option, problem);
	return -EINVAL;
}

static int parse_real(const char *option, const char *text, double min, double max,
		      double *ret_value)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= min && value <= max)) {
		fprintf(stderr, "load: %s takes a number from %g to %g; see load --help\n", option,
			min, max);
		return -EINVAL;
	}
	*ret_value = value;
	return 0;
}

static int parse_count(const char *option, const char *text, unsigned long long min,
		       unsigned long long max, unsigned long long *ret_value)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || value < min || value > max) {
		fprintf(stderr,
			"load: %s takes a whole number from %llu to %llu; see load --help\n",
			option, min, max);
		return -EINVAL;
	}
	*ret_value = value;
	return 0;
}

static int parse_small(const char *option, const char *text, unsigned int min, unsigned int max,
		       unsigned int *ret_value)
{
	unsigned long long value;
	int err = parse_count(option, text, min, max, &value);

	if (!err)
		*ret_value = (unsigned int)value;
	return err;
}

static int parse_seed(const char *text, uint64_t *ret_seed)
{
	unsigned long long value;
	int err = parse_count("--seed", text, 0, UINT64_MAX, &value);

	if (!err)
		*ret_seed = value;
	return err;
}

static int parse_timeout(const char *text, uint64_t *ret_timeout_ns)
{
	double timeout_ms;
	int err = parse_real("--timeout", text, 1, SECONDS_MAX * 1e3, &timeout_ms);

	if (!err)
		*ret_timeout_ns = (uint64_t)(timeout_ms * 1e6);
	return err;
}

static int parse_mode(const char *text, enum load_mode *ret_mode)
{
	if (!strcmp(text, "open"))
		*ret_mode = LOAD_OPEN;
	else if (!strcmp(text, "rate"))
		*ret_mode = LOAD_RATE;
	else if (!strcmp(text, "hold"))
		*ret_mode = LOAD_HOLD;
	else
		return usage_error("--mode", "takes open, rate or hold");
	return 0;
}

/* The options that say how much and how long. */
static int parse_amount(int option, const char *text, struct load_options *options)
{
	switch (option) {
	case OPT_RATE:
		return parse_real("--rate", text, 0.1, 1e6, &options->rate);
	case OPT_LOAD:
		return parse_real("--load", text, 0.001, 10, &options->load);
	case OPT_SECONDS:
		return parse_real("--seconds", text, 0.01, SECONDS_MAX, &options->seconds);
	case OPT_SEED:
		return parse_seed(text, &options->seed);
	case OPT_TIMEOUT:
		return parse_timeout(text, &options->timeout_ns);
	case OPT_WORKERS:
		return parse_small("--workers", text, 1, 65536, &options->nr_workers);
	case OPT_CONNECTIONS:
		return parse_small("--connections", text, 1, CONNECTIONS_MAX,
				   &options->nr_connections);
	default:
		return parse_small("--parallel", text, 1, 65536, &options->nr_parallel);
	}
}

static int parse_option(int option, const char *text, struct load_options *options,
			unsigned int *nr_sources)
{
	switch (option) {
	case OPT_TARGET:
		if (target_parse(text, &options->target))
			return usage_error("--target", "takes ADDR:PORT or [V6]:PORT");
		return 0;
	case OPT_MODE:
		return parse_mode(text, &options->mode);
	case OPT_MIX:
		if (mix_parse(text, &options->mix))
			return usage_error("--mix", "takes KIND:MS:WEIGHT, up to 16 of them");
		return 0;
	case OPT_SOURCES:
		return parse_small("--source-addresses", text, 0, TARGET_SOURCES_MAX, nr_sources);
	case OPT_PROGRESS:
		options->has_progress = true;
		return 0;
	case OPT_JSON:
		options->has_json = true;
		return 0;
	case OPT_LOG:
		options->log_path = text;
		return 0;
	case 'h':
		fputs(help_text, stdout);
		return -ECANCELED;
	case '?':
		fputs("load: see load --help\n", stderr);
		return -EINVAL;
	default:
		return parse_amount(option, text, options);
	}
}

static int compute_rate(struct load_options *options)
{
	double mean_seconds = mix_mean_demand_ns(&options->mix) / 1e9;

	if (options->mode != LOAD_OPEN)
		return 0;
	if (!options->rate == !(options->load > 0))
		return usage_error("open mode", "needs either --rate or --load");
	if (options->rate > 0)
		return 0;
	if (!options->nr_workers || mean_seconds <= 0)
		return usage_error("--load", "needs --workers and a --mix that takes time");
	options->rate = options->load * options->nr_workers / mean_seconds;
	return 0;
}

static int check_options(struct load_options *options, unsigned int nr_sources)
{
	bool is_loopback = target_is_loopback_v4(&options->target);

	if (!options->target.nr_address_bytes)
		return usage_error("--target", "is missing");
	if (nr_sources == SOURCES_NOT_GIVEN)
		nr_sources = is_loopback ? SOURCES_DEFAULT : 0;
	if (nr_sources && !is_loopback)
		return usage_error("--source-addresses", "needs a target in 127.0.0.0/8");
	if (options->log_path && options->mode != LOAD_OPEN)
		return usage_error("--log", "needs --mode open");
	options->target.nr_sources = nr_sources;
	return compute_rate(options);
}

int load_options_parse(int argc, char **argv, struct load_options *ret_options)
{
	struct load_options options = {
		.seconds = 10,
		.seed = 1,
		.timeout_ns = 10ULL * 1000 * 1000 * 1000,
		.nr_connections = 100,
		.nr_parallel = 1,
	};
	unsigned int nr_sources = SOURCES_NOT_GIVEN;
	int option;
	int err = mix_parse("answer:0:1", &options.mix);

	while (!err && (option = getopt_long(argc, argv, "h", long_options, NULL)) != -1)
		err = parse_option(option, optarg, &options, &nr_sources);
	if (err)
		return err;
	if (optind < argc)
		return usage_error(argv[optind], "is not an option");
	err = check_options(&options, nr_sources);
	if (!err)
		*ret_options = options;
	return err;
}
