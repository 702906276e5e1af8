/* SPDX-License-Identifier: GPL-2.0-only */
#include "support/footprint.h"
#include "base/cleanup.h"
#include "kernel/pins.h"
#include "steering/scan.h"
#include "support/clients.h"
#include "support/sandbox.h"
#include "support/steered.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define KALLSYMS "/proc/kallsyms"

/* Enough for each listener of any small group to get some. */
#define NR_VISITS 12

void footprint_look(const struct endpoint *endpoint, struct footprint *ret_footprint)
{
	struct inventory inventory CLEANUP(inventory_done) = {};
	struct failure failure = {};
	char text[ENDPOINT_TEXT_BYTES];
	struct group_spec spec;
	size_t i;

	*ret_footprint = (struct footprint){};
	spec_of_endpoint(endpoint, text, &spec);
	cr_assert_eq(inventory_scan(&inventory, &failure), 0, "%s", failure.message);
	for (i = 0; i < inventory.nr_groups; i++) {
		const struct group *group = &inventory.groups[i];

		if (!group_spec_matches(&spec, group))
			continue;
		ret_footprint->nr_listeners += group->nr_listeners;
		ret_footprint->nr_processes += group_nr_processes(group);
		ret_footprint->nr_workers += group_nr_workers(group);
		ret_footprint->prog_type = group->prog_type;
		ret_footprint->prog_id = group->prog_id;
	}
}

void expect_no_footprint(const struct endpoint *endpoint, const char *what)
{
	struct footprint footprint;

	footprint_look(endpoint, &footprint);
	cr_expect_eq(footprint.prog_type, 0, "%s: the group has a program of type %u, id %u", what,
		     footprint.prog_type, footprint.prog_id);
	cr_expect(access(PINS_PATH, F_OK) && errno == ENOENT, "%s: " PINS_PATH " is there", what);
}

void expect_untouched(const struct endpoint *endpoint, const char *what)
{
	expect_no_footprint(endpoint, what);
	clients_visit(endpoint, NR_VISITS, 1, END_WORKER_FIRST);
}

const char *number_format(uint64_t number, char ret_text[NUMBER_BYTES])
{
	snprintf(ret_text, NUMBER_BYTES, "%" PRIu64, number);
	return ret_text;
}

const char *network_format(char ret_text[NUMBER_BYTES])
{
	struct network network;

	network_current(&network);
	network_done(&network);
	return number_format(network.inode, ret_text);
}

static void copy_names(FILE *from, FILE *to)
{
	char line[512];

	while (fgets(line, sizeof(line), from))
		if (strstr(line, " ep_poll_callback\n") || strstr(line, " io_poll_wake\n"))
			fputs(line, to);
}

void kallsyms_shorten(void)
{
	FILE *from CLEANUP(cleanup_file) = fopen(KALLSYMS, "re");
	FILE *to CLEANUP(cleanup_file) = NULL;
	char path[] = "/tmp/socksteer-kallsyms-XXXXXX";
	int fd = mkstemp(path);

	cr_assert(from && fd >= 0, "%s: %s", from ? path : KALLSYMS, strerror(errno));
	to = fdopen(fd, "w");
	cr_assert_not_null(to);
	copy_names(from, to);
	/* Anybody may read the real one. */
	cr_assert_eq(fchmod(fd, 0444), 0);
	cr_assert_eq(fflush(to), 0);
	cr_assert_eq(mount(path, KALLSYMS, NULL, MS_BIND, NULL), 0, "mount: %s", strerror(errno));
	cr_assert_eq(unlink(path), 0);
}

void kallsyms_restore(void)
{
	cr_assert_eq(umount(KALLSYMS), 0, "umount: %s", strerror(errno));
}
