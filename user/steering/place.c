/* SPDX-License-Identifier: GPL-2.0-only */
#include "steering/place.h"
#include "socksteer/policy.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/* Long enough that nobody floods a new worker, short enough for workers that are recycled often. */
#define DEFAULT_SLOW_START_NS 1000000000

/* Far longer than a healthy event loop takes to come round, and little to a client. */
#define DEFAULT_STUCK_AFTER_NS 100000000

/* A CPU's view of a large group may be this old; its own selections are in it at once. */
#define DEFAULT_REFRESH_NS 1000000

void group_folder(const struct group *group, char ret_folder[FOLDER_SIZE])
{
	char address[INET6_ADDRSTRLEN] = "", device[16] = "";
	static const uint8_t any[16];
	bool is_half;
	char *dot;

	/* Only for [::] does it make another group. */
	is_half = group->v6only && group->family == AF_INET6 &&
		  !memcmp(group->address, any, sizeof(any));
	inet_ntop((int)group->family, group->address, address, sizeof(address));
	while ((dot = strchr(address, '.')))
		*dot = '-';
	if (group->ifindex)
		snprintf(device, sizeof(device), "_if%u", group->ifindex);
	snprintf(ret_folder, FOLDER_SIZE, "%s_%u_net%u%s%s", address, group->port, group->netns,
		 device, is_half ? "_v6only" : "");
}

const struct group *group_in_folder(const char *folder, const struct inventory *inventory)
{
	char name[FOLDER_SIZE];
	size_t i;

	for (i = 0; i < inventory->nr_groups; i++) {
		group_folder(&inventory->groups[i], name);
		if (inventory->groups[i].id && !strcmp(name, folder))
			return &inventory->groups[i];
	}
	return NULL;
}

void group_name(const struct group *group, char ret_name[ADDRESS_TEXT_SIZE])
{
	size_t length;

	text_of_address(group->family, group->address, group->port, ret_name);
	length = strlen(ret_name);
	if (group->ifindex)
		snprintf(ret_name + length, ADDRESS_TEXT_SIZE - length, "%%%u", group->ifindex);
}

void settings_init(const struct group *group, enum policy policy, struct settings *ret_settings)
{
	*ret_settings = (struct settings){
		.policy = policy,
		.busy_penalty = DEFAULT_BUSY_PENALTY,
		.refresh_ns = DEFAULT_REFRESH_NS,
		.slow_start_ns = DEFAULT_SLOW_START_NS,
		.stuck_after_ns = DEFAULT_STUCK_AFTER_NS,
		.rescue = RESCUE_OFF,
		.port = group->port,
		.family = group->family,
		.netns = group->netns,
		.ifindex = group->ifindex,
		.v6only = group->v6only,
	};
	memcpy(ret_settings->address, group->address, sizeof(ret_settings->address));
}

void group_of_settings(const struct settings *settings, struct group *ret_group)
{
	*ret_group = (struct group){
		.family = settings->family,
		.port = settings->port,
		.netns = settings->netns,
		.ifindex = settings->ifindex,
		.v6only = settings->v6only,
	};
	memcpy(ret_group->address, settings->address, sizeof(ret_group->address));
}

void settings_name(const struct settings *settings, char ret_name[ADDRESS_TEXT_SIZE])
{
	struct group group;

	group_of_settings(settings, &group);
	group_name(&group, ret_name);
}
