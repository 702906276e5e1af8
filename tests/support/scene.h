/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scene: a group that could be steered, and the words by which the program is told of it. A test
 * says each time which network it means, because the machine may have groups on any port.
 */
#ifndef SUPPORT_SCENE_H
#define SUPPORT_SCENE_H

#include "support/footprint.h"
#include "support/servers.h"

struct scene {
	struct servers servers;
	char group[ENDPOINT_TEXT_BYTES]; /* "127.0.0.1:8080" */
	char port[NUMBER_BYTES]; /* ":8080" */
	char netns[NUMBER_BYTES]; /* for --netns */
};

/* For .init of a suite: a sandbox with a short /proc/kallsyms, see support/footprint.h. */
void scene_enter(void);

/* Starts epoll-worker with these arguments, see support/servers.h. */
void scene_start_list(struct scene *scene, const char *const *arguments);
#define scene_start(scene, ...) scene_start_list(scene, (const char *const[]){ __VA_ARGS__, NULL })

/* Attaches with the program, and expects that it succeeds. */
void scene_attach(const struct scene *scene);

/* Runs "command GROUP word [word]", and expects that it succeeds and that these words are in its output. */
void scene_says(const struct scene *scene, const char *command, const char *word,
		const char *more_or_null, const char *says);

#endif
