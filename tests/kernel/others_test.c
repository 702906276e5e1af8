/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Programs of other owners on the same group: never replaced unasked, and noticed when they
 * replace ours.
 */
#include "support/clients.h"
#include "support/plain_group.h"
#include "support/sandbox.h"
#include "support/steered.h"
#include "kernel/remote.h"
#include "steering/scan.h"

#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct attach_options polite = { .policy = POLICY_LEAST_LOADED };
static const struct attach_options forced = { .policy = POLICY_LEAST_LOADED, .force = true };

TestSuite(others, .init = quick_sandbox_enter, .timeout = TEST_SECONDS);

/* A program that selects nothing, as another project might attach. */
static int other_program(void)
{
	const struct bpf_insn instructions[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = SK_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_SK_REUSEPORT, "quic_bpf", "GPL", instructions,
			       sizeof(instructions) / sizeof(instructions[0]), NULL);

	cr_assert(fd >= 0, "bpf_prog_load: %s", strerror(errno));
	return fd;
}

/* Classic BPF that returns index 0. */
static void attach_classic(int listener)
{
	struct sock_filter first = { .code = BPF_RET | BPF_K };
	struct sock_fprog program = { .len = 1, .filter = &first };

	cr_assert_eq(setsockopt(listener, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program,
				sizeof(program)),
		     0, "classic BPF: %s", strerror(errno));
}

static void attach_other(int listener)
{
	int program = other_program();

	cr_assert_eq(reuseport_attach(listener, program), 0);
	close(program);
}

/* Refused with these words, which leaves nothing behind; then replaced by force. */
static void expect_respect(const struct plain_group *group, const char *words)
{
	struct clients clients CLEANUP(clients_done) = {};
	char text[ENDPOINT_TEXT_BYTES];
	struct attach_report report;
	struct failure failure = {};
	struct group_spec spec;
	struct status status;

	spec_of_endpoint(&group->endpoint, text, &spec);
	expect_refusal(&spec, &polite, EXIT_FAILED, words);
	cr_expect_neq(access("/sys/fs/bpf/socksteer", F_OK), 0, "the refusal left pins behind");
	expect_refusal(&spec, &polite, EXIT_FAILED, "--force replaces it");

	cr_assert_eq(group_attach(&spec, &forced, &report, &failure), 0, "%s", failure.message);
	clients_connect(&clients, &group->endpoint, 6);
	cr_assert_eq(status_read(&spec, &status, &failure), 0, "%s", failure.message);
	cr_expect(status.groups[0].steered);
	cr_expect_eq(status.groups[0].outcomes[OUTCOME_SELECTED], 6);
	status_done(&status);
}

static void start_two(struct plain_group *group)
{
	plain_group_init(group, "127.0.0.1", "0");
	plain_group_add_watched(group, 2, PLAIN_BACKLOG);
}

Test(others, an_ebpf_program_stays_unless_it_is_replaced_by_force)
{
	struct plain_group group;

	start_two(&group);
	attach_other(group.listeners[0]);
	expect_respect(&group, "\"quic_bpf\"");
}

Test(others, a_classic_program_stays_unless_it_is_replaced_by_force)
{
	struct plain_group group;

	start_two(&group);
	attach_classic(group.listeners[0]);
	expect_respect(&group, "classic BPF");
}

Test(others, a_program_that_replaces_ours_is_noticed_and_stays)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct plain_group group;
	struct steered steered;
	struct counts before;
	struct status status;

	start_two(&group);
	steer(&steered, &group.endpoint, POLICY_LEAST_LOADED);
	attach_other(group.listeners[1]);
	steered_count(&steered, &before);
	clients_connect(&clients, &group.endpoint, 6);
	await_held(&steered, EVERY_SLOT, 6);
	/* Steering ended, counting did not. */
	expect_outcomes(&steered, &before, (struct outcomes){});
	expect_loads(&steered, &before, (struct load){ .opened = 6 });
	steered_status(&steered, &status);
	cr_expect_not(status.groups[0].steered);
	status_done(&status);
	expect_refusal(&steered.spec, &polite, EXIT_FAILED, "\"quic_bpf\"");
}

/* The name of the program that is attached to the only group of this network. */
static void program_name(const struct steered *steered, char ret_name[COMM_SIZE])
{
	struct inventory inventory = {};
	struct failure failure = {};
	size_t i;

	ret_name[0] = '\0';
	cr_assert_eq(inventory_scan(&inventory, &failure), 0, "%s", failure.message);
	for (i = 0; i < inventory.nr_groups; i++)
		if (group_spec_matches(&steered->spec, &inventory.groups[i]))
			memcpy(ret_name, inventory.groups[i].prog_name, COMM_SIZE);
	inventory_done(&inventory);
}

Test(others, detaching_leaves_the_program_of_another_owner_where_it_is)
{
	struct plain_group group;
	struct steered steered;
	struct failure failure = {};
	char name[COMM_SIZE];
	size_t nr_groups;

	start_two(&group);
	steer(&steered, &group.endpoint, POLICY_LEAST_LOADED);
	attach_other(group.listeners[1]);
	cr_assert_eq(group_detach_all(&nr_groups, &failure), 0, "%s", failure.message);
	cr_expect_eq(nr_groups, 1);
	program_name(&steered, name);
	cr_expect_str_eq(name, "quic_bpf");
}

/* As a container with a bpffs of its own would do, beside a machine that is being steered. */
Test(others, a_group_that_is_steered_from_another_bpffs_is_left_alone)
{
	struct clients clients CLEANUP(clients_done) = {};
	struct plain_group group;
	struct steered steered;
	struct failure failure = {};
	struct counts before;
	size_t nr_groups;

	start_two(&group);
	steer(&steered, &group.endpoint, POLICY_LEAST_LOADED);
	steered_count(&steered, &before);
	cr_assert_eq(mount("bpf", "/sys/fs/bpf", "bpf", 0, NULL), 0, "%s", strerror(errno));
	expect_refusal(&steered.spec, &polite, EXIT_FAILED, "pins are not below");
	cr_assert_eq(group_detach_all(&nr_groups, &failure), 0, "%s", failure.message);
	cr_expect_eq(nr_groups, 0);
	clients_connect(&clients, &group.endpoint, 6);
	expect_outcomes(&steered, &before, (struct outcomes){ .selected = 6 });
}
