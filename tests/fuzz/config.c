/* SPDX-License-Identifier: GPL-2.0-only */
/* The configuration file, with any bytes in it. */
#include "daemon/config.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct failure failure = {};
	struct config config;

	if (size <= MAX_CONFIG_BYTES &&
	    !config_parse("FILE", (const char *)data, size, &config, &failure))
		config_done(&config);
	return 0;
}
