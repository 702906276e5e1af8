/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * answer: reads what epoll-worker answers: the status and, in the body, who answered. Pure.
 */
#ifndef BENCH_ANSWER_H
#define BENCH_ANSWER_H

#include <stddef.h>
#include <sys/types.h>

struct answer_facts {
	unsigned int status;
	unsigned int worker; /* Its number. */
	int pid; /* 0 when the body does not name a worker. */
};

/*
 * @data ends with a NUL byte that @nr_bytes does not count. Returns the length of the answer, 0
 * when it is not complete, -EBADMSG when it is none.
 */
ssize_t answer_parse(const char *data, size_t nr_bytes, struct answer_facts *ret_facts);

#endif
