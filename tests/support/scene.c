/* SPDX-License-Identifier: GPL-2.0-only */
#include "support/scene.h"
#include "base/cleanup.h"
#include "support/program.h"
#include "support/sandbox.h"

#include <stdio.h>
#include <string.h>

void scene_enter(void)
{
	sandbox_enter();
	kallsyms_shorten();
}

void scene_start_list(struct scene *scene, const char *const *arguments)
{
	servers_start_list(&scene->servers, arguments);
	endpoint_format(&scene->servers.endpoint, scene->group);
	snprintf(scene->port, sizeof(scene->port), "%s", strrchr(scene->group, ':'));
	network_format(scene->netns);
}

void scene_attach(const struct scene *scene)
{
	program_succeeds("attach", scene->group, "--netns", scene->netns);
}

void scene_says(const struct scene *scene, const char *command, const char *word,
		const char *more_or_null, const char *says)
{
	struct said said CLEANUP(said_done) = {};

	program_run(&said, command, scene->group, "--netns", scene->netns, word, more_or_null);
	expect_done(&said, command, says);
}
