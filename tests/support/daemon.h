/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * daemon: socksteer run as a child process, the file that it reads, and waits for what it does.
 */
#ifndef SUPPORT_DAEMON_H
#define SUPPORT_DAEMON_H

#include "support/program.h"
#include "support/scene.h"
#include "worker/listener.h"

#include <stdbool.h>
#include <stddef.h>

/* A configuration that lives in memory, and so ends with the test, however that ends. */
struct config_file {
	int fd; /* owned */
	char path[64]; /* for other processes too */
};

void config_file_new(struct config_file *file);
void config_file_done(struct config_file *file);
/* Replaces all of it. */
__attribute__((format(printf, 2, 3))) void config_file_write(const struct config_file *file,
							     const char *format, ...);

/* Starts it for the scene's group. setup and option may be NULL. */
void daemon_start(struct program *ret_daemon, const struct program_setup *setup,
		  const struct scene *scene, const char *option);

/* Waits until its log has these words. */
void daemon_await_said(const struct program *daemon, const char *words);

/* Ends it as systemd does, and expects that it ends well. */
void daemon_stop(struct program *daemon, struct said *ret_said);

/* The group that listens here in the current network. */
bool group_is_steered(const struct endpoint *endpoint);
void await_steered(const struct endpoint *endpoint);
void await_not_steered(const struct endpoint *endpoint);

/* True if the scene's group is steered and exactly as many listeners are in slots; waits for that. */
bool has_steered_listeners(const struct scene *scene, size_t nr_listeners);
void await_steered_listeners(const struct scene *scene, size_t nr_listeners);

/* Expects this value, as text, of a steered group's setting. */
void expect_setting(const struct endpoint *endpoint, const char *name, const char *expected);

#endif
