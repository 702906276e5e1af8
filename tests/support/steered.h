/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * steered: a group that the test steers, in process, through the same functions as the program. It
 * reads the pinned maps itself, so that it also checks what status says.
 *
 * What cannot fail in a good build is asserted here, with the message of the failure.
 */
#ifndef SUPPORT_STEERED_H
#define SUPPORT_STEERED_H

#include "base/failure.h"
#include "kernel/group_maps.h"
#include "kernel/tables.h"
#include "steering/attach.h"
#include "steering/status.h"
#include "worker/listener.h"

#include <sys/types.h>

/* Slots that the tests look at: more than any of them fills. */
#define NR_SEEN_SLOTS 512

/* Instead of one slot. */
#define EVERY_SLOT ((uint32_t)-1)

struct steered {
	struct group_spec spec; /* exactly this group, in the current network */
	char text[ENDPOINT_TEXT_BYTES];
	struct attach_report report; /* of the last attach */
	struct tables tables; /* owned */
	struct group_maps maps; /* owned */
};

/* The outcomes by name, so that a test can say all it expects in one line. */
struct outcomes {
#define OUTCOME(NAME, name, text) uint64_t name;
#include "socksteer/counters.def"
};

/* All that is counted for a group, at one moment. */
struct counts {
	struct outcomes outcomes;
	struct load loads[NR_SEEN_SLOTS]; /* of the listeners, by slot; of empty ones zero */
};

/*
 * Attaches to the group that listens here, with a stuck-after that no test lives to see: the listeners of
 * most tests are never accepted from.
 */
void steer(struct steered *ret_steered, const struct endpoint *endpoint, enum policy policy);

/* The same with the usual stuck-after. */
void steer_hangable(struct steered *ret_steered, const struct endpoint *endpoint,
		    enum policy policy);
void steered_set_stuck_after(const struct steered *steered, uint64_t ns);

/* Looks at a group that another process has attached. steered_done() ends the look. */
void steered_open(struct steered *ret_steered, const struct endpoint *endpoint);
void steered_done(struct steered *steered);

/* Attaches once more, which takes in listeners that came meanwhile. */
void steer_again(struct steered *steered);

void steered_set_policy(const struct steered *steered, enum policy policy);

/* Ends it, with everything that belongs to it. */
void steered_detach(struct steered *steered);

/* The spec of the group that listens here, in the current network. */
void spec_of_endpoint(const struct endpoint *endpoint, char text[ENDPOINT_TEXT_BYTES],
		      struct group_spec *ret_spec);

/* Expects that attaching fails with this code, and that the message has these words in it. */
void expect_refusal(const struct group_spec *spec, const struct attach_options *options,
		    enum exit_code code, const char *words);

/* The status of exactly this group; ended with status_done(). */
void steered_status(const struct steered *steered, struct status *ret_status);

void steered_count(const struct steered *steered, struct counts *ret_counts);

/*
 * Expects that since then these runs were counted, and no other; and, of all listeners together,
 * these events and no other.
 */
void expect_outcomes(const struct steered *steered, const struct counts *before,
		     struct outcomes expected);
void expect_loads(const struct steered *steered, const struct counts *before, struct load expected);

/* Connections that the listener in a slot, or in every slot, holds. */
uint64_t steered_held(const struct steered *steered, uint32_t slot);

/* Waits until it holds that many. */
void await_held(const struct steered *steered, uint32_t slot, uint64_t held);

/* How many slots are taken; where the listener with this cookie sits; where that of a process does. */
size_t steered_nr_members(const struct steered *steered);
uint32_t slot_of_cookie(const struct steered *steered, uint64_t cookie);
uint32_t slot_of_pid(const struct steered *steered, pid_t pid);

/* The row of the worker that serves a slot. */
void worker_of_slot(const struct steered *steered, uint32_t slot, struct worker *ret_worker);
void worker_of_slot_set(const struct steered *steered, uint32_t slot, const struct worker *worker);

/* Changes a row of a load map on one CPU, as no program would. */
void load_falsify(int map, uint32_t row, uint64_t opened, uint64_t closed);

#endif
