/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * socksteer run --all, and [all]: which groups a pattern takes.
 *
 * The daemon sees every group of the machine, so each pattern here names addresses that only this
 * test uses.
 */
#include "base/cleanup.h"
#include "kernel/remote.h"
#include "support/daemon.h"
#include "support/plain_group.h"
#include "support/sandbox.h"
#include "support/scene.h"

#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

TestSuite(all, .init = scene_enter, .timeout = TEST_SECONDS);

/* An address of this test alone, among all tests that run beside it. */
static const char *own_address(unsigned int last, char ret_text[NUMBER_BYTES])
{
	unsigned int pid = (unsigned int)getpid();

	snprintf(ret_text, NUMBER_BYTES, "127.%u.%u.%u", 1 + pid / 256 % 254, pid % 256, last);
	return ret_text;
}

static void start_on(struct scene *scene, unsigned int last)
{
	char address[NUMBER_BYTES];

	scene_start(scene, "--workers", "2", "--address", own_address(last, address));
}

/* A program that selects nothing, of another owner. */
static void attach_other(int listener)
{
	const struct bpf_insn instructions[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = SK_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd CLEANUP(cleanup_fd) =
		bpf_prog_load(BPF_PROG_TYPE_SK_REUSEPORT, "quic_bpf", "GPL", instructions,
			      sizeof(instructions) / sizeof(instructions[0]), NULL);

	cr_assert_geq(fd, 0, "bpf_prog_load: %s", strerror(errno));
	cr_assert_eq(reuseport_attach(listener, fd), 0);
}

/* Two listeners of this very process, whose name is its own. */
static void plain_start_on(struct plain_group *group, unsigned int last)
{
	char address[NUMBER_BYTES];

	plain_group_init(group, own_address(last, address), "0");
	plain_group_add_watched(group, 2, PLAIN_BACKLOG);
}

Test(all, all_takes_the_groups_that_match_now_and_later_and_no_others)
{
	char glob[64], address[NUMBER_BYTES];
	struct said said CLEANUP(said_done) = {};
	struct plain_group other_command, other_program, lone;
	struct scene now, later, elsewhere;
	struct program daemon;

	/* Hostile bytes, which match by a pattern of their kind only. */
	cr_assert_eq(prctl(PR_SET_NAME, "\x1b[2J\xff*?\n"), 0);
	start_on(&now, 1);
	plain_start_on(&other_command, 2);
	plain_start_on(&other_program, 3);
	attach_other(other_program.listeners[0]);
	plain_group_init(&lone, own_address(4, address), "0");
	plain_group_add_watched(&lone, 1, PLAIN_BACKLOG);
	scene_start(&elsewhere, "--workers", "2");
	snprintf(glob, sizeof(glob), "address=%s*", own_address(0, address));
	*strrchr(glob, '0') = '?';
	program_start(&daemon, NULL,
		      (const char *const[]){ "run", "--all", "--match", glob, "--match",
					     "command=epoll-w?rker", "--match", "user=0",
					     "--policy", "p2c", "--detach-on-exit", NULL });
	await_steered(&now.servers.endpoint);
	start_on(&later, 5);
	await_steered(&later.servers.endpoint);
	expect_setting(&later.servers.endpoint, "policy", "p2c");
	cr_expect_not(group_is_steered(&other_command.endpoint));
	cr_expect_not(group_is_steered(&other_program.endpoint));
	cr_expect_not(group_is_steered(&lone.endpoint));
	cr_expect_not(group_is_steered(&elsewhere.servers.endpoint));
	daemon_stop(&daemon, &said);
	cr_expect_null(strstr(said.error, "cannot"), "%s", said.error);
	expect_untouched(&now.servers.endpoint, "the end of run");
	expect_untouched(&later.servers.endpoint, "the end of run");
}

Test(all, a_section_wins_over_all_and_a_program_of_somebody_else_over_both)
{
	struct config_file file CLEANUP(config_file_done) = {};
	struct said said CLEANUP(said_done) = {};
	struct plain_group hostile, other_program;
	char address[NUMBER_BYTES];
	struct program daemon;
	struct scene named;

	cr_assert_eq(prctl(PR_SET_NAME, "\x1b[2J\xff*?\n"), 0);
	start_on(&named, 1);
	plain_start_on(&hostile, 2);
	plain_start_on(&other_program, 3);
	attach_other(other_program.listeners[0]);
	own_address(9, address);
	*strrchr(address, '9') = '*';
	config_file_new(&file);
	config_file_write(&file,
			  "[all]\naddress = %s\ncommand = *[[]2J*\nuser = 0\npolicy = round-robin\n"
			  "[group %s]\nnetns = %s\nslow-start = 3s\n[defaults]\nbusy-penalty = 2\n",
			  address, named.group, named.netns);
	program_start(&daemon, NULL,
		      (const char *const[]){ "run", "--config", file.path, "--detach-on-exit",
					     NULL });
	await_steered(&named.servers.endpoint);
	await_steered(&hostile.endpoint);
	expect_setting(&hostile.endpoint, "policy", "round-robin");
	expect_setting(&hostile.endpoint, "busy-penalty", "2.00");
	expect_setting(&named.servers.endpoint, "policy", "least-loaded");
	expect_setting(&named.servers.endpoint, "slow-start", "3s");
	expect_setting(&named.servers.endpoint, "busy-penalty", "2.00");
	cr_expect_not(group_is_steered(&other_program.endpoint));
	daemon_stop(&daemon, &said);
	cr_expect_null(strstr(said.error, "--force"), "%s", said.error);
	expect_no_footprint(&hostile.endpoint, "the end of run");
	expect_untouched(&named.servers.endpoint, "the end of run");
}
