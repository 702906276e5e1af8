/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/auditor.h"
#include "audit.skel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "kernel/log.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

struct auditor {
	struct audit_bpf *skeleton; /* owned */
};

void auditor_free(struct auditor *auditor)
{
	if (auditor)
		audit_bpf__destroy(auditor->skeleton);
	free(auditor);
}

static void cleanup_auditor(struct auditor **auditor)
{
	auditor_free(*auditor);
}

static void cleanup_link(struct bpf_link **link)
{
	bpf_link__destroy(*link);
}

static int refused(struct failure *failure, int err)
{
	failure_set(failure, EXIT_MISSING, -err,
		    "the kernel refused to load the program that audits: %s", strerror(-err));
	kernel_log_add_tail(failure);
	return err;
}

static int reuse_tables(struct audit_bpf *audit, const struct tables *tables)
{
	int err = bpf_map__reuse_fd(audit->maps.workers, tables->workers);

	if (!err)
		err = bpf_map__reuse_fd(audit->maps.worker_load, tables->worker_load);
	if (!err)
		err = bpf_map__reuse_fd(audit->maps.listener_info, tables->listener_info);
	if (!err)
		err = bpf_map__reuse_fd(audit->maps.listener_load, tables->listener_load);
	if (!err)
		err = bpf_map__reuse_fd(audit->maps.events, tables->events);
	if (!err)
		err = bpf_map__reuse_fd(audit->maps.audits, tables->audits);
	if (!err)
		err = bpf_map__reuse_fd(audit->maps.layout, tables->layout);
	if (!err)
		err = bpf_map__reuse_fd(audit->maps.conn_owner, tables->conn_owner);
	return err;
}

int auditor_new(const struct tables *tables, struct auditor **ret_auditor, struct failure *failure)
{
	struct auditor *auditor CLEANUP(cleanup_auditor) = calloc(1, sizeof(*auditor));
	int err;

	if (!auditor)
		return failure_set(failure, EXIT_FAILED, ENOMEM, "out of memory");
	kernel_log_start();
	auditor->skeleton = audit_bpf__open();
	if (!auditor->skeleton)
		return refused(failure, -errno);
	err = reuse_tables(auditor->skeleton, tables);
	if (!err)
		err = audit_bpf__load(auditor->skeleton);
	if (err)
		return refused(failure, err);
	*ret_auditor = TAKE_PTR(auditor);
	return 0;
}

int auditor_add_place(struct auditor *auditor, const struct audit_place *place, uint32_t group)
{
	int map = bpf_map__fd(auditor->skeleton->maps.places);

	return bpf_map_update_elem(map, place, &group, BPF_ANY) ? -errno : 0;
}

int auditor_add_holder(struct auditor *auditor, const struct audit_holder *holder,
		       const struct conn_owner *owner)
{
	int map = bpf_map__fd(auditor->skeleton->maps.holders);

	if (!bpf_map_update_elem(map, holder, owner, BPF_NOEXIST) || errno == EEXIST)
		return 0;
	return -errno;
}

/* Removes every key; each is the first one once. */
static int map_empty(int map, void *key)
{
	while (!bpf_map_get_next_key(map, NULL, key))
		if (bpf_map_delete_elem(map, key))
			return -errno;
	return errno == ENOENT ? 0 : -errno;
}

int auditor_forget(struct auditor *auditor)
{
	struct audit_holder holder;
	struct audit_place place;
	int err = map_empty(bpf_map__fd(auditor->skeleton->maps.places), &place);

	return err ? err : map_empty(bpf_map__fd(auditor->skeleton->maps.holders), &holder);
}

static void forget_counts(struct audit_bpf *audit)
{
	audit->bss->totals = (struct audit_totals){};
	memset(audit->bss->listener_seen, 0, sizeof(audit->bss->listener_seen));
	memset(audit->bss->listener_queued, 0, sizeof(audit->bss->listener_queued));
	memset(audit->bss->listener_queued_most, 0, sizeof(audit->bss->listener_queued_most));
	memset(audit->bss->worker_seen, 0, sizeof(audit->bss->worker_seen));
}

/* Records outlive the auditor that numbered them; the clock gives a number that none has. */
static uint32_t next_pass(uint32_t last)
{
	uint32_t pass = last ? last + 1 : (uint32_t)(clock_now_ns() >> 10);

	return pass ? pass : 1;
}

/* The iterator writes nothing; reading it to its end runs it. */
static int run_iterator(struct bpf_program *program)
{
	struct bpf_link *link CLEANUP(cleanup_link) = bpf_program__attach_iter(program, NULL);
	int iterator CLEANUP(cleanup_fd) = -1;
	ssize_t length;
	char byte;

	if (!link)
		return -errno;
	iterator = bpf_iter_create(bpf_link__fd(link));
	if (iterator < 0)
		return -errno;
	do
		length = read(iterator, &byte, sizeof(byte));
	while (length > 0 || (length < 0 && (errno == EINTR || errno == EAGAIN)));
	return length < 0 ? -errno : 0;
}

int auditor_run(struct auditor *auditor, bool repair, struct audit_counts *ret_counts,
		struct failure *failure)
{
	struct audit_bpf *audit = auditor->skeleton;
	int err;

	forget_counts(audit);
	audit->bss->pass = next_pass(audit->bss->pass);
	audit->bss->repair = repair;
	err = run_iterator(audit->progs.audit);
	if (err)
		return failure_set(failure, EXIT_FAILED, -err, "cannot count the connections: %s",
				   strerror(-err));
	*ret_counts = (struct audit_counts){
		.totals = audit->bss->totals,
		.listener_seen = audit->bss->listener_seen,
		.listener_queued = audit->bss->listener_queued,
		.listener_queued_most = audit->bss->listener_queued_most,
		.worker_seen = audit->bss->worker_seen,
	};
	return 0;
}

int auditor_adjust(struct auditor *auditor, const struct audit_adjustment *adjustment)
{
	struct audit_adjustment request = *adjustment;
	struct bpf_test_run_opts options = {
		.sz = sizeof(options),
		.ctx_in = &request,
		.ctx_size_in = sizeof(request),
	};
	int err =
		bpf_prog_test_run_opts(bpf_program__fd(auditor->skeleton->progs.adjust), &options);

	return err < 0 ? -errno : 0;
}
