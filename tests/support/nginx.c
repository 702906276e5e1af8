/* SPDX-License-Identifier: GPL-2.0-only */
#include "support/nginx.h"
#include "support/foreign.h"

#include <signal.h>
#include <stdio.h>

static const char config[] = "daemon off;\n"
			     "user root;\n"
			     "pid nginx.pid;\n"
			     "error_log stderr;\n"
			     "worker_processes %zu;\n"
			     "events { worker_connections 128; }\n"
			     "http {\n"
			     "	access_log off;\n"
			     "	keepalive_timeout 300s;\n"
			     "	client_body_temp_path body;\n"
			     "	proxy_temp_path proxy;\n"
			     "	fastcgi_temp_path fastcgi;\n"
			     "	uwsgi_temp_path uwsgi;\n"
			     "	scgi_temp_path scgi;\n"
			     "	server {\n"
			     "		listen " FOREIGN_GROUP " reuseport;\n"
			     "		location / { return 200 \"worker 0 pid $pid\\n\"; }\n"
			     "	}\n"
			     "}\n";

static void write_config(size_t nr_workers)
{
	char text[sizeof(config) + 24];

	snprintf(text, sizeof(text), config, nr_workers);
	foreign_write("nginx.conf", text);
}

/* The master holds every listener too. */
void nginx_start(size_t nr_workers)
{
	write_config(nr_workers);
	foreign_start("nginx", "-p", foreign_get()->folder, "-c", "nginx.conf");
	foreign_await(nr_workers, nr_workers, nr_workers + 1);
}

void nginx_reload(size_t nr_workers)
{
	write_config(nr_workers);
	kill(foreign_get()->pid, SIGHUP);
}
