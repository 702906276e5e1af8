/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How long groups that ended have been away, each by the name of its folder. Pure: the caller says
 * what time it is, by CLOCK_MONOTONIC.
 */
#ifndef SOCKSTEER_DAEMON_ABSENCES_H
#define SOCKSTEER_DAEMON_ABSENCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zeros is an empty list. */
struct absences {
	struct absence *items; /* owned */
	size_t nr;
};

void absences_done(struct absences *absences);

/* A look begins: whoever is not noted until its end is away no more. */
void absences_begin(struct absences *absences);
void absences_end(struct absences *absences);

/*
 * This look finds it away. Returns for how long that is so; 0 the first time, and always where there
 * is no memory.
 */
uint64_t absences_note(struct absences *absences, const char *folder, uint64_t now_ns);

/* Begins anew with this one, as if it had gone now. */
void absences_restart(struct absences *absences, const char *folder, uint64_t now_ns);

/* True if one has been away for so long. */
bool absences_reach(const struct absences *absences, uint64_t now_ns, uint64_t longest_ns);

#endif
