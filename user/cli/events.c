/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/cli.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/pulse.h"
#include "cli/options.h"
#include "kernel/witness.h"
#include "show/change.h"
#include "steering/lookout.h"
#include "steering/place.h"

#include <errno.h>
#include <string.h>

/*
 * Listeners are reported by the kernel as they come and go; everything else is found by comparing, so
 * often that a person sees no delay. It costs a hundredth of a CPU with a few listeners, and a tenth
 * with a thousand.
 */
#define COMPARE_NS 150000000

const char events_help[] =
	"Shows what happens from now on, one line for each event, until Ctrl-C: listeners\n"
	"with SO_REUSEPORT that join and leave, in every network namespace, to the\n"
	"microsecond; and of steered groups their begin and end, slots that are taken,\n"
	"workers that are stuck, rescued (the listener leaves and joins for a moment) and\n"
	"recovered, drained or resumed, and weights and settings that change, all of\n"
	"which is noticed within a fifth of a second.\n"
	"\n"
	"PID is the worker of a listener that has a slot, else the process that opened or\n"
	"closed it. Any number of these can run, beside the daemon or without one.\n";

const char events_option_help[] =
	"      --json          print one JSON object on each line\n"
	"      --for DURATION  end after that time, such as 10s, 500ms, or 2m\n";

const char events_more[] =
	"Exit codes: 0 ended by Ctrl-C, SIGTERM or --for; 1 failed; 2 usage; 3 a right is\n"
	"missing.\n"
	"\n"
	"Examples:\n"
	"  socksteer events\n"
	"  socksteer events --json --for 1m | jq -c 'select(.event == \"left\")'\n";

/* All owned but options. */
struct log {
	const struct options *options;
	struct pulse pulse;
	struct witness *witness;
	struct lookout *lookout;
	struct status status; /* at the last look */
	bool is_settling; /* the last look was put aside */
	uint64_t nr_lost; /* as told so far */
	uint64_t end_ns; /* CLOCK_MONOTONIC, 0 for never */
	int err; /* of the output; the first one ends the log */
};

static void log_done(struct log *log)
{
	witness_free(log->witness);
	lookout_free(log->lookout);
	status_done(&log->status);
	pulse_done(&log->pulse);
}

static void log_change(const struct change *change, void *argument)
{
	struct log *log = argument;

	if (!log->err)
		log->err = log->options->json ? change_print_json(change, stdout) :
						change_print_text(change, stdout);
}

/* A listener that joins has no slot yet, also where it had one before. */
static void log_listener(const struct witness_record *record, void *argument)
{
	struct log *log = argument;
	bool joins = record->event.kind == EVENT_LISTENER_JOINED;
	const struct status_listener *known =
		status_find_listener(&log->status, record->event.cookie);
	struct group group = {
		.family = record->event.family,
		.port = record->event.port,
		.ifindex = record->ifindex,
	};
	struct change change = {
		.kind = joins ? CHANGE_JOINED : CHANGE_LEFT,
		.time_ns = record->event.time_ns,
		.netns = record->event.netns,
		.cookie = record->event.cookie,
		.has_slot = known && !joins,
		.slot = known ? known->slot : 0,
		.pid = known ? known->pid : record->pid,
	};

	memcpy(group.address, record->address, sizeof(group.address));
	group_name(&group, change.group);
	memcpy(change.comm, known ? known->comm : record->comm, sizeof(change.comm));
	log_change(&change, log);
}

static void log_count(struct log *log, enum change_kind kind, uint64_t count)
{
	const struct change change = {
		.kind = kind,
		.time_ns = clock_now_ns(),
		.count = count,
	};

	log_change(&change, log);
}

static int log_listeners(struct log *log)
{
	int err = witness_drain(log->witness);
	uint64_t nr_lost = witness_nr_lost(log->witness);

	if (nr_lost > log->nr_lost)
		log_count(log, CHANGE_LOST, nr_lost - log->nr_lost);
	log->nr_lost = nr_lost;
	return err;
}

/* Looks again and logs what is different. */
static int log_differences(struct log *log, struct failure *failure)
{
	struct status before CLEANUP(status_done) = {};
	struct status now CLEANUP(status_done) = {};
	uint64_t time_ns = clock_now_ns();
	int err = lookout_renew(log->lookout, &now, failure);

	if (err)
		return err;
	log->is_settling = !log->is_settling && status_is_settling(&log->status, &now);
	if (log->is_settling)
		return 0;
	before = log->status;
	log->status = now;
	now = (struct status){};
	status_compare(&before, &log->status, time_ns, log_change, log);
	return 0;
}

static int log_begin(struct log *log, struct failure *failure)
{
	int err = lookout_new(NULL, &log->lookout, failure);

	if (!err)
		err = witness_new(log_listener, log, &log->witness, failure);
	if (!err)
		err = lookout_renew(log->lookout, &log->status, failure);
	if (!err)
		log_count(log, CHANGE_WATCHING, log->status.nr_groups);
	return err;
}

static int log_run(struct log *log, struct failure *failure)
{
	int err = 0, reasons = 0;

	while (!err && !log->err && !(reasons & PULSE_END)) {
		reasons = pulse_wait(&log->pulse, witness_get_fd(log->witness));
		if (reasons < 0)
			return reasons;
		if (reasons & PULSE_INPUT)
			err = log_listeners(log);
		if (!err && reasons & PULSE_BEAT)
			err = log_differences(log, failure);
		if (log->end_ns && clock_now_ns() >= log->end_ns)
			break;
	}
	return err ? err : log->err;
}

int command_events(int argc, char **argv, struct failure *failure)
{
	const struct command *command = command_find("events");
	struct log log CLEANUP(log_done) = { .pulse = PULSE_NONE };
	struct options options;
	int err;

	err = options_parse(command, argc, argv, &options, failure);
	if (err)
		return err;
	if (options.help) {
		help_print_command(command, stdout);
		return 0;
	}
	log.options = &options;
	log.end_ns = options.for_ns ? clock_now_ns() + options.for_ns : 0;
	err = pulse_init(&log.pulse, COMPARE_NS);
	if (!err)
		err = log_begin(&log, failure);
	return err ? err : log_run(&log, failure);
}
