// SPDX-License-Identifier: GPL-2.0-only
/*
 * steer: hands a new connection to a listener. One instance, and one set of group_maps.h, for each
 * group; the tables of workers and listeners are shared by all groups (maps.h).
 *
 * One run: settings -> choose a slot (choose.h) -> give it to the kernel -> count. Whatever goes
 * wrong, nothing is selected, the reason is counted, and the kernel's own hash chooses. It never
 * drops. Attached as SELECT_OR_MIGRATE it also places the connections of a closing listener.
 */
#include <linux/bpf.h>
#include "choose.h"
#include "complete.h"
#include <bpf/bpf_helpers.h>

/* Verdicts of bpf_sk_select_reuseport; user space's errno.h is not for this target. */
#define ENOENT 2
#define EBADFD 77

/* Slots that a sample looks into for a listener; the first are filled first. */
#define SAMPLED_SLOTS 16

char LICENSE[] SEC("license") = "GPL";

/*
 * Plain additions to this CPU's own rows: runs of steer on one CPU do not interrupt each other, since
 * all of them are in softirq context or with softirqs off.
 */
static __always_inline void load_count(struct load *load, bool migrating)
{
	if (!load)
		return;
	if (migrating)
		load->migrated++;
	else
		load->steered++;
}

/* Charges a selection to the listener and its worker, and to what this CPU decides from next. */
static __always_inline void account(struct choice *choice, bool migrating)
{
	__u32 slot = choice->slot, row;
	struct member *member = bpf_map_lookup_elem(&members, &slot);

	if (!member)
		return;
	row = member->worker;
	load_count(bpf_map_lookup_elem(&worker_load, &row), migrating);
	choice_commit(choice, member);
	row = member->listener;
	load_count(bpf_map_lookup_elem(&listener_load, &row), migrating);
}

static __always_inline __u32 outcome_of_error(long err)
{
	if (err == -ENOENT)
		return OUTCOME_EMPTY_SLOT;
	if (err == -EBADFD)
		return OUTCOME_OTHER_GROUP;
	return OUTCOME_REFUSED;
}

/* xorshift32 (Marsaglia 2003): a fair choice among equals needs no more, and the helper costs a call. */
static __always_inline __u32 random_next(struct scratch *scratch)
{
	__u32 random = scratch->random;

	if (!random)
		random = bpf_get_prandom_u32() | 1;
	random ^= random << 13;
	random ^= random >> 17;
	random ^= random << 5;
	scratch->random = random;
	return random;
}

/* False without settings, which are written before steer is attached. */
static __always_inline bool choice_begin(struct choice *choice)
{
	const __u32 row = 0;

	choice->settings = bpf_map_lookup_elem(&settings, &row);
	choice->rotation = bpf_map_lookup_elem(&rotation, &row);
	return choice->settings && choice->rotation;
}

/*
 * The time, if the listener that joined last may still be in its slow start. Remembered is when that
 * ends, and not who joined: a change of the setting moves it.
 */
static __always_inline __u64 ramp_now(const struct settings *current, struct scratch *scratch)
{
	const __u32 row = 0;
	struct alarm *alarm = bpf_map_lookup_elem(&alarms, &row);
	__u64 end = alarm ? alarm->last_ramp_ns + current->slow_start_ns : 0, now;

	if (end == scratch->settled_ns)
		return 0;
	now = bpf_ktime_get_ns();
	if (now >= end)
		scratch->settled_ns = end;
	return now;
}

/* Selects a listener and returns what became of it. */
static __always_inline __u32 select_listener(struct sk_reuseport_md *ctx)
{
	bool migrating = ctx->migrating_sk != NULL;
	const __u32 row = 0;
	struct scratch *scratch = bpf_map_lookup_elem(&scratches, &row);
	struct choice choice;
	__u32 slot;
	long err;

	if (ctx->ip_protocol != IPPROTO_TCP)
		return OUTCOME_NOT_TCP;
	if (!scratch || !choice_begin(&choice))
		return OUTCOME_NO_SETTINGS;
	if (choice.settings->policy == POLICY_HASH)
		return OUTCOME_HASH;
	arrays_find();
	if (!group_is_steerable(ctx, scratch, choice.settings->nr_slots))
		return OUTCOME_INCOMPLETE;
	choice.seed = random_next(scratch);
	choice.now = ramp_now(choice.settings, scratch);
	slot = choose(&choice);
	if (slot == NO_SLOT)
		return OUTCOME_NO_LISTENER;
	err = bpf_sk_select_reuseport(ctx, &listeners, &slot, 0);
	if (err)
		return outcome_of_error(err);
	account(&choice, migrating);
	return migrating ? OUTCOME_MIGRATED : OUTCOME_SELECTED;
}

/* Somebody has to look at the queues from now on: what was selected last may be the last SYN for long. */
__noinline int alarm_raise(void)
{
	const __u32 row = 0;
	struct settings *current = bpf_map_lookup_elem(&settings, &row);
	struct alarm *alarm = bpf_map_lookup_elem(&alarms, &row);

	if (!current || !alarm)
		return 0;
	alarm->armed = 1;
	report_member(current, NULL, EVENT_ARRIVAL, bpf_ktime_get_ns());
	return 0;
}

SEC("sk_reuseport/migrate")
int steer(struct sk_reuseport_md *ctx)
{
	__u32 outcome = select_listener(ctx);
	__u64 *count = bpf_map_lookup_elem(&counters, &outcome);
	const __u32 row = 0;
	struct alarm *alarm = bpf_map_lookup_elem(&alarms, &row);

	if (count)
		++*count;
	if (alarm && !alarm->armed)
		alarm_raise();
	return SK_PASS;
}

/* The group that the first listener in a slot belongs to, 0 if no slot is filled. */
static __always_inline __u64 find_group(void)
{
	__u32 slot;

	for (slot = 0; slot < SAMPLED_SLOTS; slot++) {
		__u64 sk = slot_socket(slot);
		__u64 group = sk ? kread_pointer(kaddress(struct sock, sk, sk_reuseport_cb)) : 0;

		if (group)
			return group;
	}
	return 0;
}

/*
 * For the daemon, which runs it by hand and attaches it nowhere: the id of the program that the group
 * has at this moment, SAMPLE_CLASSIC, or 0 for none. A syscall program would be the natural kind, but
 * it may sleep, and such programs may not name a sockarray.
 */
SEC("raw_tp")
int sample(void *unused)
{
	__u64 group, prog, aux;

	arrays_find();
	group = find_group();
	if (!group)
		return 0;
	prog = kread_pointer(kaddress(struct sock_reuseport, group, prog));
	if (!prog)
		return 0;
	if (!kread(struct bpf_prog, prog, type))
		return SAMPLE_CLASSIC;
	aux = kread_pointer(kaddress(struct bpf_prog, prog, aux));
	return kread(struct bpf_prog_aux, aux, id);
}

/* bpf_loop callback: one look at the listener in a slot. */
static long survey_slot(__u32 slot, __u32 *result)
{
	struct member *member = bpf_map_lookup_elem(&members, &slot);
	__u64 sk = slot_socket(slot);
	struct listener_queue queue;
	struct listener_wait wait;

	if (!member || !sk)
		return 0;
	listener_read_queue(sk, &queue);
	listener_read_wait(sk, &wait);
	member_look(slot, sk, wait.state, queue.queued);
	if (queue.queued || queue.half_open)
		*result |= SURVEY_WAITING;
	if (member->stuck_ns)
		*result |= SURVEY_STUCK;
	return 0;
}

/*
 * Also run by hand: looks at all listeners, so that a hang is noticed when no SYN comes. Returns enum
 * survey_result.
 */
SEC("raw_tp")
int survey(void *unused)
{
	const __u32 row = 0;
	struct settings *current = bpf_map_lookup_elem(&settings, &row);
	__u32 result = 0;

	if (!current)
		return 0;
	arrays_find();
	bpf_loop(current->nr_slots < MAX_SLOTS ? current->nr_slots : MAX_SLOTS, survey_slot,
		 &result, 0);
	return result;
}
