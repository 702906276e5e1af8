/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * exposition: a reader of Prometheus text, format 0.0.4, that is as strict as promtool: names and
 * labels are well formed, HELP and TYPE stand once and before the series of a family, a family
 * stands in one piece, counters and nothing else end in _total, and no series stands twice. What
 * socksteer does not print (timestamps, histograms, negative values) is refused too.
 */
#ifndef SUPPORT_EXPOSITION_H
#define SUPPORT_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COMPLAINT_BYTES 512

/* False if the text breaks a rule: then ret_complaint says which, and in which line. */
bool exposition_is_valid(const char *text, char ret_complaint[COMPLAINT_BYTES]);

/* Expects that it is, and gives the number of its series. */
size_t expect_exposition(const char *text);

/* The value of a series, such as "name{label=\"value\"}", which is there. */
uint64_t exposition_value(const char *text, const char *series);

#endif
