/* SPDX-License-Identifier: GPL-2.0-only */
#include "support/steered.h"
#include "base/cleanup.h"
#include "kernel/values.h"
#include "steering/operate.h"
#include "steering/place.h"
#include "support/sandbox.h"
#include "support/waiting.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <criterion/criterion.h>
#include <string.h>

/* Room for every name and two numbers each. */
#define DIFFERENCE_BYTES 1024

void spec_of_endpoint(const struct endpoint *endpoint, char text[ENDPOINT_TEXT_BYTES],
		      struct group_spec *ret_spec)
{
	struct network network;

	endpoint_format(endpoint, text);
	cr_assert_eq(group_spec_parse(text, ret_spec), 0, "%s", text);
	network_current(&network);
	ret_spec->netns = network.inode;
	network_done(&network);
}

static void attach(struct steered *steered, enum policy policy)
{
	const struct attach_options options = { .policy = policy };
	struct failure failure = {};
	int err = group_attach(&steered->spec, &options, &steered->report, &failure);

	cr_assert_eq(err, 0, "attach %s: %s", steered->text, failure.message);
}

static void open_maps(struct steered *steered)
{
	struct failure failure = {};
	char folder[FOLDER_SIZE];
	struct group group = {
		.family = steered->spec.family,
		.port = steered->spec.port,
		.netns = steered->spec.netns,
	};

	memcpy(group.address, steered->spec.address, sizeof(group.address));
	group_folder(&group, folder);
	cr_assert_eq(tables_open(&steered->tables, &failure), 0, "tables: %s", failure.message);
	cr_assert_eq(group_maps_open(folder, &steered->maps), 0, "%s", folder);
}

/* Longer than any test takes. */
#define NEVER_STUCK_NS 3600000000000

void steer(struct steered *ret_steered, const struct endpoint *endpoint, enum policy policy)
{
	steer_hangable(ret_steered, endpoint, policy);
	steered_set_stuck_after(ret_steered, NEVER_STUCK_NS);
}

void steer_hangable(struct steered *ret_steered, const struct endpoint *endpoint,
		    enum policy policy)
{
	*ret_steered = (struct steered){ .tables = TABLES_NONE, .maps = GROUP_MAPS_NONE };
	spec_of_endpoint(endpoint, ret_steered->text, &ret_steered->spec);
	attach(ret_steered, policy);
	cr_assert_not(ret_steered->report.already);
	open_maps(ret_steered);
}

void steered_open(struct steered *ret_steered, const struct endpoint *endpoint)
{
	*ret_steered = (struct steered){ .tables = TABLES_NONE, .maps = GROUP_MAPS_NONE };
	spec_of_endpoint(endpoint, ret_steered->text, &ret_steered->spec);
	open_maps(ret_steered);
}

void steered_done(struct steered *steered)
{
	group_maps_done(&steered->maps);
	tables_done(&steered->tables);
}

void steer_again(struct steered *steered)
{
	attach(steered, POLICY_LEAST_LOADED);
	cr_assert(steered->report.already);
}

void steered_set_policy(const struct steered *steered, enum policy policy)
{
	struct failure failure = {};
	char name[ADDRESS_TEXT_SIZE];
	int err = group_set_policy(&steered->spec, policy, name, &failure);

	cr_assert_eq(err, 0, "policy %s: %s", steered->text, failure.message);
}

void steered_set_stuck_after(const struct steered *steered, uint64_t ns)
{
	struct settings settings;

	cr_assert_eq(value_read(steered->maps.settings, 0, &settings), 0);
	settings.stuck_after_ns = ns;
	cr_assert_eq(value_write(steered->maps.settings, 0, &settings), 0);
}

void steered_detach(struct steered *steered)
{
	struct failure failure = {};
	char name[ADDRESS_TEXT_SIZE];
	int err;

	steered_done(steered);
	err = group_detach(&steered->spec, name, &failure);
	cr_assert_eq(err, 0, "detach %s: %s", steered->text, failure.message);
}

void expect_refusal(const struct group_spec *spec, const struct attach_options *options,
		    enum exit_code code, const char *words)
{
	struct attach_report report;
	struct failure failure = {};
	int err = group_attach(spec, options, &report, &failure);

	cr_assert_lt(err, 0, "%s was not refused", spec->text);
	cr_expect_eq(failure.code, code, "%s: code %d: %s", spec->text, failure.code,
		     failure.message);
	cr_expect(strstr(failure.message, words), "%s: \"%s\" is not in \"%s\"", spec->text, words,
		  failure.message);
}

void steered_status(const struct steered *steered, struct status *ret_status)
{
	struct failure failure = {};
	int err = status_read(&steered->spec, ret_status, &failure);

	cr_assert_eq(err, 0, "status %s: %s", steered->text, failure.message);
	cr_assert_eq(ret_status->nr_groups, 1);
}

static void member_read(const struct steered *steered, uint32_t slot, struct member *ret_member)
{
	cr_assert_eq(value_read(steered->maps.members, slot, ret_member), 0);
}

static void members_read(const struct steered *steered, struct member members[MAX_SLOTS])
{
	cr_assert_eq(values_read(steered->maps.members, members, sizeof(*members), MAX_SLOTS), 0);
}

static void loads_read(const struct steered *steered, struct load loads[NR_SEEN_SLOTS])
{
	struct member members[MAX_SLOTS];
	uint32_t slot;

	memset(loads, 0, NR_SEEN_SLOTS * sizeof(*loads));
	members_read(steered, members);
	for (slot = 0; slot < NR_SEEN_SLOTS; slot++)
		if (members[slot].cookie)
			cr_assert_eq(load_read(steered->tables.listener_load,
					       members[slot].listener, &loads[slot]),
				     0);
}

static void outcomes_read(const struct steered *steered, struct outcomes *ret_outcomes)
{
#define OUTCOME(NAME, name, text)                                                                  \
	cr_assert_eq(counter_read(steered->maps.counters, OUTCOME_##NAME, &ret_outcomes->name), 0);
#include "socksteer/counters.def"
}

void steered_count(const struct steered *steered, struct counts *ret_counts)
{
	outcomes_read(steered, &ret_counts->outcomes);
	loads_read(steered, ret_counts->loads);
}

/* Adds "NAME is FOUND, not EXPECTED" to the text if they differ. */
static void note_difference(char text[DIFFERENCE_BYTES], const char *name, uint64_t found,
			    uint64_t expected)
{
	size_t used = strlen(text);

	if (found != expected)
		snprintf(text + used, DIFFERENCE_BYTES - used, " %s is %lu, not %lu;", name, found,
			 expected);
}

void expect_outcomes(const struct steered *steered, const struct counts *before,
		     struct outcomes expected)
{
	char text[DIFFERENCE_BYTES] = "";
	struct outcomes now;

	outcomes_read(steered, &now);
#define OUTCOME(NAME, name, sentence)                                                              \
	note_difference(text, #name, now.name - before->outcomes.name, expected.name);
#include "socksteer/counters.def"
	cr_expect_str_empty(text, "outcomes of %s:%s", steered->text, text);
}

void expect_loads(const struct steered *steered, const struct counts *before, struct load expected)
{
	char text[DIFFERENCE_BYTES] = "";
	struct load now[NR_SEEN_SLOTS], sum = {};
	uint32_t slot;

	loads_read(steered, now);
	for (slot = 0; slot < NR_SEEN_SLOTS; slot++) {
#define LOAD_COUNTER(name, sentence) sum.name += now[slot].name - before->loads[slot].name;
#include "socksteer/counters.def"
	}
#define LOAD_COUNTER(name, sentence) note_difference(text, #name, sum.name, expected.name);
#include "socksteer/counters.def"
	cr_expect_str_empty(text, "listeners of %s:%s", steered->text, text);
}

uint64_t steered_held(const struct steered *steered, uint32_t slot)
{
	struct load loads[NR_SEEN_SLOTS];
	uint64_t held = 0;
	uint32_t i;

	loads_read(steered, loads);
	for (i = 0; i < NR_SEEN_SLOTS; i++)
		if (slot == EVERY_SLOT || slot == i)
			held += loads[i].opened - loads[i].closed;
	return held;
}

struct held_wait {
	const struct steered *steered;
	uint32_t slot;
	uint64_t held;
};

static bool is_held(void *argument)
{
	const struct held_wait *wait = argument;

	return steered_held(wait->steered, wait->slot) == wait->held;
}

void await_held(const struct steered *steered, uint32_t slot, uint64_t held)
{
	struct held_wait wait = { steered, slot, held };

	cr_assert(wait_until(is_held, &wait, DEADLINE_MS), "%s holds %lu and not %lu",
		  steered->text, steered_held(steered, slot), held);
}

size_t steered_nr_members(const struct steered *steered)
{
	struct member members[MAX_SLOTS];
	size_t count = 0;
	uint32_t slot;

	members_read(steered, members);
	for (slot = 0; slot < MAX_SLOTS; slot++)
		count += members[slot].cookie != 0;
	return count;
}

uint32_t slot_of_cookie(const struct steered *steered, uint64_t cookie)
{
	struct member members[MAX_SLOTS];
	uint32_t slot;

	members_read(steered, members);
	for (slot = 0; slot < MAX_SLOTS; slot++)
		if (members[slot].cookie == cookie)
			return slot;
	cr_assert_fail("no slot of %s has cookie %lu", steered->text, cookie);
	return MAX_SLOTS;
}

uint32_t slot_of_pid(const struct steered *steered, pid_t pid)
{
	struct member members[MAX_SLOTS];
	struct worker worker;
	uint32_t slot;

	members_read(steered, members);
	for (slot = 0; slot < MAX_SLOTS; slot++) {
		if (!members[slot].cookie)
			continue;
		worker_of_slot(steered, slot, &worker);
		if (worker.pid == (uint32_t)pid)
			return slot;
	}
	cr_assert_fail("no slot of %s is served by process %d", steered->text, pid);
	return MAX_SLOTS;
}

void worker_of_slot(const struct steered *steered, uint32_t slot, struct worker *ret_worker)
{
	struct member member;

	member_read(steered, slot, &member);
	cr_assert_eq(value_read(steered->tables.workers, member.worker, ret_worker), 0);
}

void worker_of_slot_set(const struct steered *steered, uint32_t slot, const struct worker *worker)
{
	struct member member;

	member_read(steered, slot, &member);
	cr_assert_eq(value_write(steered->tables.workers, member.worker, worker), 0);
}

void load_falsify(int map, uint32_t row, uint64_t opened, uint64_t closed)
{
	int nr_cpus = libbpf_num_possible_cpus();
	struct load *loads = calloc((size_t)nr_cpus, sizeof(*loads));

	cr_assert_eq(bpf_map_lookup_elem(map, &row, loads), 0);
	loads[0].opened += opened;
	loads[0].closed += closed;
	cr_assert_eq(bpf_map_update_elem(map, &row, loads, BPF_ANY), 0);
	free(loads);
}
