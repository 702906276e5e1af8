/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a group lives: its folder of pins, and the settings that say which group a folder is for.
 */
#ifndef SOCKSTEER_STEERING_PLACE_H
#define SOCKSTEER_STEERING_PLACE_H

#include "base/text.h"
#include "socksteer/types.h"
#include "steering/inventory.h"

#define FOLDER_SIZE 128

/* Such as "127-0-0-1_8080_net4026531840": readable, and free of the dots that bpffs refuses. */
void group_folder(const struct group *group, char ret_folder[FOLDER_SIZE]);

/* The live group whose folder this is; NULL if it is gone. Borrowed from inventory. */
const struct group *group_in_folder(const char *folder, const struct inventory *inventory);

/* The group's address, with its device where it is bound to one: "127.0.0.1:80%3". */
void group_name(const struct group *group, char ret_name[ADDRESS_TEXT_SIZE]);

/* Settings with every default, for this group. */
void settings_init(const struct group *group, enum policy policy, struct settings *ret_settings);

/* The group that settings are for, without listeners: enough to match a spec and to be named. */
void group_of_settings(const struct settings *settings, struct group *ret_group);

/* The name of that group. */
void settings_name(const struct settings *settings, char ret_name[ADDRESS_TEXT_SIZE]);

#endif
