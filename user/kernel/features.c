/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/features.h"
#include "kernel/log.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <cap-ng.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF 39
#endif

static const struct {
	unsigned int capability;
	const char *name;
	const char *use;
	enum purpose purpose; /* the least purpose that needs it */
} needs[] = {
	{ CAP_BPF, "CAP_BPF", "load BPF programs", PURPOSE_LOOK },
	{ CAP_PERFMON, "CAP_PERFMON", "read and trace kernel state", PURPOSE_LOOK },
	{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "copy the workers' listeners", PURPOSE_CHANGE },
};

#define NR_NEEDS (sizeof(needs) / sizeof(needs[0]))

_Static_assert(NR_NEEDS + 1 == RIGHTS_MAX, "these and CAP_SYS_ADMIN");

/* What each live signal reads; bpf/listener.h asks the same of CO-RE. */
static const struct {
	const char *signal;
	const char *type;
	const char *field;
} signals[] = {
	{ "half-open", "inet_connection_sock", "icsk_accept_queue" },
	{ "queued", "sock", "sk_max_ack_backlog" },
	{ "idle or busy", "eppoll_entry", "wait" },
	{ "idle or busy", "eventpoll", "wq" },
};

static int btf_missing(struct failure *failure)
{
	return failure_set(failure, EXIT_MISSING, ENOENT,
			   "this kernel describes no types in /sys/kernel/btf/vmlinux: boot one "
			   "built with CONFIG_DEBUG_INFO_BTF=y");
}

/*
 * Where vmlinux has no bpf_rdonly_cast (before 6.2), libbpf looks for it in the modules' types, and
 * the kernel shows those to CAP_SYS_ADMIN only. Delete it when 6.1 is no longer supported.
 */
static bool needs_modules(const struct btf *btf)
{
	return btf__find_by_name_kind(btf, "bpf_rdonly_cast", BTF_KIND_FUNC) < 0;
}

static int modules_check(const struct btf *btf, struct failure *failure)
{
	if (capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_ADMIN) || !needs_modules(btf))
		return 0;
	return failure_set(failure, EXIT_MISSING, EPERM,
			   "CAP_SYS_ADMIN is missing, which kernels before 6.2 need to load BPF "
			   "programs with types: run as root, or grant it");
}

/* libbpf finds the types in other places too, so it has the last word. */
static int btf_check(struct failure *failure)
{
	struct btf *btf;
	int err;

	/* Reading all types takes a while; who is root and has the file needs no look into it. */
	if (!access("/sys/kernel/btf/vmlinux", R_OK) &&
	    capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_ADMIN))
		return 0;
	kernel_log_start();
	btf = btf__load_vmlinux_btf();
	if (!btf)
		return btf_missing(failure);
	err = modules_check(btf, failure);
	btf__free(btf);
	return err;
}

int rights_check(enum purpose purpose, struct failure *failure)
{
	size_t i;

	if (capng_get_caps_process())
		return failure_set(failure, EXIT_MISSING, EPERM,
				   "cannot read this process's capabilities");
	for (i = 0; i < NR_NEEDS; i++)
		if (needs[i].purpose <= purpose &&
		    !capng_have_capability(CAPNG_EFFECTIVE, needs[i].capability))
			return failure_set(failure, EXIT_MISSING, EPERM,
					   "%s is missing, which is needed to %s: run as root, or "
					   "grant CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE",
					   needs[i].name, needs[i].use);
	return btf_check(failure);
}

void rights_list(struct right ret_rights[RIGHTS_MAX])
{
	size_t i;

	for (i = 0; i < NR_NEEDS; i++)
		ret_rights[i] = (struct right){ needs[i].capability, needs[i].name };
	ret_rights[i] = (struct right){ CAP_SYS_ADMIN, "CAP_SYS_ADMIN" };
}

int rights_needed(struct right ret_rights[RIGHTS_MAX], size_t *ret_nr_rights,
		  struct failure *failure)
{
	struct btf *btf;

	kernel_log_start();
	btf = btf__load_vmlinux_btf();
	if (!btf)
		return btf_missing(failure);
	rights_list(ret_rights);
	*ret_nr_rights = needs_modules(btf) ? RIGHTS_MAX : NR_NEEDS;
	btf__free(btf);
	return 0;
}

static bool btf_has_field(const struct btf *btf, const char *type, const char *field)
{
	int id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);
	const struct btf_member *member;
	const struct btf_type *btf_type;
	int i;

	if (id < 0)
		return false;
	btf_type = btf__type_by_id(btf, (__u32)id);
	member = btf_members(btf_type);
	for (i = 0; i < btf_vlen(btf_type); i++, member++)
		if (!strcmp(btf__name_by_offset(btf, member->name_off), field))
			return true;
	return false;
}

static void add_missing(struct features *features, const char *signal)
{
	size_t used = strlen(features->signals_missing);

	if (strstr(features->signals_missing, signal))
		return;
	snprintf(features->signals_missing + used, sizeof(features->signals_missing) - used, "%s%s",
		 used ? ", " : "", signal);
}

int features_probe(struct features *ret_features, struct failure *failure)
{
	struct features features = {};
	struct btf *btf;
	size_t i;
	int err;

	err = rights_check(PURPOSE_CHANGE, failure);
	if (err)
		return err;
	btf = btf__load_vmlinux_btf();
	if (!btf)
		return btf_missing(failure);
	features.nr_cpus = (uint32_t)libbpf_num_possible_cpus();
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!btf_has_field(btf, signals[i].type, signals[i].field))
			add_missing(&features, signals[i].signal);
	btf__free(btf);
	*ret_features = features;
	return 0;
}
