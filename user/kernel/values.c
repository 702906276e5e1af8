/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/values.h"
#include "base/cleanup.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int value_read(int map, uint32_t key, void *ret_value)
{
	return bpf_map_lookup_elem(map, &key, ret_value) ? -errno : 0;
}

int value_write(int map, uint32_t key, const void *value)
{
	return bpf_map_update_elem(map, &key, value, BPF_ANY) ? -errno : 0;
}

/* Without a copy for each row: the whole table is some pages of memory. */
int values_read(int map, void *ret_values, size_t value_bytes, uint32_t nr_rows)
{
	void *rows = mmap(NULL, value_bytes * nr_rows, PROT_READ, MAP_SHARED, map, 0);

	if (rows == MAP_FAILED)
		return -errno;
	memcpy(ret_values, rows, value_bytes * nr_rows);
	munmap(rows, value_bytes * nr_rows);
	return 0;
}

int value_write_part(int map, uint32_t key, size_t value_bytes, size_t offset, const void *part,
		     size_t part_bytes)
{
	size_t bytes = value_bytes * ((size_t)key + 1);
	char *rows = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);

	if (rows == MAP_FAILED)
		return -errno;
	memcpy(rows + value_bytes * key + offset, part, part_bytes);
	munmap(rows, bytes);
	return 0;
}

int load_read(int map, uint32_t row, struct load *ret_load)
{
	struct load *values CLEANUP(cleanup_free) = NULL;
	int nr_cpus = libbpf_num_possible_cpus(), cpu, err;

	if (nr_cpus < 0)
		return nr_cpus;
	values = calloc((size_t)nr_cpus, sizeof(*values));
	if (!values)
		return -ENOMEM;
	err = value_read(map, row, values);
	if (err)
		return err;
	*ret_load = (struct load){};
	for (cpu = 0; cpu < nr_cpus; cpu++) {
#define LOAD_COUNTER(name, text) ret_load->name += values[cpu].name;
#include "socksteer/counters.def"
	}
	return 0;
}

int counter_read(int map, uint32_t row, uint64_t *ret_count)
{
	uint64_t *values CLEANUP(cleanup_free) = NULL;
	int nr_cpus = libbpf_num_possible_cpus(), cpu, err;

	if (nr_cpus < 0)
		return nr_cpus;
	values = calloc((size_t)nr_cpus, sizeof(*values));
	if (!values)
		return -ENOMEM;
	err = value_read(map, row, values);
	if (err)
		return err;
	*ret_count = 0;
	for (cpu = 0; cpu < nr_cpus; cpu++)
		*ret_count += values[cpu];
	return 0;
}

int load_clear(int map, uint32_t row)
{
	struct load *values CLEANUP(cleanup_free) = NULL;
	int nr_cpus = libbpf_num_possible_cpus();

	if (nr_cpus < 0)
		return nr_cpus;
	values = calloc((size_t)nr_cpus, sizeof(*values));
	if (!values)
		return -ENOMEM;
	return value_write(map, row, values);
}

int slot_put(int listeners, uint32_t slot, int listener_fd)
{
	uint64_t value = (uint64_t)listener_fd;

	return value_write(listeners, slot, &value);
}

int slot_clear(int listeners, uint32_t slot)
{
	if (bpf_map_delete_elem(listeners, &slot) && errno != ENOENT)
		return -errno;
	return 0;
}

int slot_read(int listeners, uint32_t slot, uint64_t *ret_cookie)
{
	return value_read(listeners, slot, ret_cookie);
}

int owner_write(int conn_owner, int listener_fd, const struct conn_owner *owner)
{
	return bpf_map_update_elem(conn_owner, &listener_fd, owner, BPF_ANY) ? -errno : 0;
}
