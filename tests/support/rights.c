/* SPDX-License-Identifier: GPL-2.0-only */
#include "support/rights.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stddef.h>

/* Kernels before 6.2 show modules' types, which libbpf asks for there, to CAP_SYS_ADMIN only. */
bool kernel_needs_sys_admin(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool needs = btf__find_by_name_kind(btf, "bpf_rdonly_cast", BTF_KIND_FUNC) < 0;

	btf__free(btf);
	return needs;
}

uint64_t rights_documented(void)
{
	uint64_t rights = 1ULL << CAP_BPF | 1ULL << CAP_PERFMON | 1ULL << CAP_SYS_PTRACE;

	return rights | (kernel_needs_sys_admin() ? 1ULL << CAP_SYS_ADMIN : 0);
}

static int keep(unsigned int capability)
{
	return capng_update(CAPNG_ADD,
			    CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_INHERITABLE |
				    CAPNG_BOUNDING_SET | CAPNG_AMBIENT,
			    capability);
}

/*
 * A program that root begins gets the whole bounding set, any other user's gets the ambient set. The
 * bounding set is lowered first, as long as that is allowed.
 */
int rights_keep(void *argument)
{
	const struct rights *rights = argument;
	int id = (int)rights->uid;
	size_t i;

	capng_clear(CAPNG_SELECT_ALL);
	if (rights->kept[0] && kernel_needs_sys_admin() && keep(CAP_SYS_ADMIN))
		return -EINVAL;
	for (i = 0; i < RIGHTS_KEPT_MAX && rights->kept[i]; i++)
		if (keep(rights->kept[i]))
			return -EINVAL;
	if (capng_apply(CAPNG_SELECT_BOUNDS))
		return -EPERM;
	if (id && capng_change_id(id, id, CAPNG_DROP_SUPP_GRP))
		return -EPERM;
	return capng_apply(CAPNG_SELECT_CAPS | CAPNG_SELECT_AMBIENT) ? -EPERM : 0;
}
