#!/bin/bash
# What the benchmarks share that compare plain, steered and steered+rescue: network, mounts and bpffs of their own,
# servers and daemon in it, the accounting of what was started, figures by mode, and bounds. Sourced, from the root
# of the tree, with PORT free to choose: nobody else is in this network.
PATH=$PATH:/usr/sbin:/sbin
# Decimal points, in what is read as in what is written.
export LC_ALL=C
port=8080
group=127.0.0.1:$port
netns=/proc/self/ns/net
work=
daemon=
server=
nr_broken=0

# sandbox_enter SCRIPT ARGUMENT...: begins the script again in namespaces of its own, once
sandbox_enter() {
	if [ -z "${BENCH_SANDBOX:-}" ]; then
		BENCH_SANDBOX=1 exec unshare --net --mount --propagation private "$@"
	fi
	ip link set lo up
	mount -t bpf bpf /sys/fs/bpf
	# Clients of a long run must not run out of ports; what is on the way to its end counts nowhere.
	sysctl -qw net.ipv4.tcp_max_tw_buckets=4096
	work=$(mktemp -d)
	# Workers of nginx are another user.
	chmod 755 "$work"
	trap sandbox_leave EXIT
	trap 'exit 143' TERM
	trap 'exit 130' INT
}

sandbox_leave() {
	set +e
	local pid
	daemon_stop
	server_stop
	for pid in $(pgrep -P $$); do process_stop "$pid"; done
	rm -rf "$work"
}

# process_stop PID: also one that is stopped; says nothing if it has ended
process_stop() {
	[ -n "$1" ] || return 0
	{ kill "$1" && kill -CONT "$1" && wait "$1"; } 2>/dev/null || true
}

# Of a server that has to go, its stopped workers too.
server_stop() {
	local pid
	for pid in $(workers_of_server); do kill -CONT "$pid" 2>/dev/null || true; done
	process_stop "$server"
	server=
}

# Prints the pids of the server's workers.
workers_of_server() {
	[ -z "$server" ] || pgrep -P "$server" || true
}

# epoll_workers_start COUNT [OPTION...]
epoll_workers_start() {
	local ready
	rm -f "$work/ready"
	mkfifo "$work/ready"
	build/epoll-worker --port "$port" --workers "$@" >"$work/ready" 2>>"$work/server" &
	server=$!
	read -r -t 10 ready <"$work/ready" && [ -n "$ready" ]
}

# nginx_configure COUNT: workers that answer as epoll-worker does
nginx_configure() {
	cat >"$work/nginx.conf" <<-END
		daemon off;
		pid $work/nginx.pid;
		error_log $work/nginx.log;
		worker_processes $1;
		events { worker_connections 8192; }
		http {
			access_log off;
			server {
				listen $group reuseport;
				location / { return 200 "worker 0 pid \$pid\n"; }
			}
		}
	END
}

# nginx_start COUNT
nginx_start() {
	nginx_configure "$1"
	nginx -e "$work/nginx.log" -c "$work/nginx.conf" &
	server=$!
	await_listeners "$1"
}

# await_listeners COUNT
await_listeners() {
	local tries
	for ((tries = 0; tries < 100; tries++)); do
		[ "$(ss -ltnH "sport = :$port" | wc -l)" -lt "$1" ] || return 0
		sleep 0.1
	done
	die "the server never has $1 listeners"
}

# mode_begin MODE: a daemon that keeps the group, unless the mode is plain
mode_begin() {
	[ "$1" != plain ] || return 0
	daemon_start "${@:2}"
	if [ "$1" = steered+rescue ]; then
		build/socksteer set "$group" rescue=stuck >/dev/null
	fi
}

# daemon_start [SETTING...]
daemon_start() {
	: >"$work/daemon.log"
	build/socksteer run "$group" --netns "$netns" 2>"$work/daemon.log" &
	daemon=$!
	# Or the shell reports a daemon that is killed.
	disown "$daemon"
	await_steered
	[ $# -eq 0 ] || build/socksteer set "$group" "$@" >/dev/null
}

await_steered() {
	local tries
	for ((tries = 0; tries < 100; tries++)); do
		[ "$(status_get .steered)" != true ] || return 0
		sleep 0.1
	done
	die "the group is never steered: $(tail -n 3 "$work/daemon.log")"
}

daemon_stop() {
	local tries
	# Where it was killed and started again, and not here.
	[ ! -s "$work/daemon" ] || daemon=$(cat "$work/daemon")
	rm -f "$work/daemon"
	[ -n "$daemon" ] || return 0
	kill "$daemon" 2>/dev/null || true
	for ((tries = 0; tries < 50; tries++)); do
		kill -0 "$daemon" 2>/dev/null || break
		sleep 0.1
	done
	if [ "$tries" -eq 50 ]; then
		echo 'the daemon does not end within 5 s and is killed' >&2
		kill -9 "$daemon" 2>/dev/null || true
	fi
	daemon=
	build/socksteer detach "$group" --netns "$netns" >/dev/null 2>&1 || true
}

# Nanoseconds of processor time of the daemon so far.
daemon_cpu_ns() {
	cat "/proc/$daemon/task/"*/schedstat | awk '{ ns += $1 } END { printf "%d\n", ns }'
}

# status_get FILTER: of the only group, "-" for what there is not
status_get() {
	build/socksteer status "$group" --json 2>/dev/null | jq -r ".groups[0] | $1 // \"-\"" 2>/dev/null || echo -
}

# status_sum FIELD: over the listeners, "-" when this socksteer does not know the field
status_sum() {
	status_get "[.listeners[].$1 | numbers] | if length > 0 then add | tostring else null end"
}

# accepted_note PID FILE: takes down, quickly, what accepted_read prints later
accepted_note() {
	find "/proc/$1/fd" -lname 'socket:*' -printf '%l\n' >"$2.fds" 2>/dev/null || true
	ss -tneH state established state close-wait "sport = :$port" >"$2.sockets"
}

# accepted_read FILE: the client addresses of connections that the process had accepted, one a line. Those that wait
# in an accept queue belong to nobody yet.
accepted_read() {
	awk -F '[][]' 'FILENAME ~ /[.]fds$/ { owned[$2] = 1; next }
		{ split($0, field, " "); match($0, /ino:[0-9]+/) }
		substr($0, RSTART + 4, RLENGTH - 4) in owned { print field[5] }' "$1.fds" "$1.sockets"
	rm "$1.fds" "$1.sockets"
}

now() {
	echo "$EPOCHREALTIME"
}

# calculate EXPRESSION: of awk
calculate() {
	awk "BEGIN { printf \"%.6f\n\", $1 }"
}

# sleep_until TIME: seconds since 1970
sleep_until() {
	sleep "$(awk -v left="$(calculate "$1 - $(now)")" 'BEGIN { print (left > 0 ? left : 0) }')"
}

# load_start NAME OPTION...: in the background, its log in $work/NAME.csv and its result in $work/NAME.json
load_start() {
	build/bench/load --target "$group" --source-addresses 50 --json --log "$work/$1.csv" "${@:2}" >"$work/$1.json" &
	load=$!
}

# load_join: the load ends when every request is answered or given up
load_join() {
	wait "$load"
}

# percentiles FILTER FILE: p50 and p99 of the answered requests of a log for which the awk expression is true
percentiles() {
	awk -F , "NR > 1 && \$3 == \"ok\" && ($1) { print \$2 }" "$2" | sort -n | awk '
		{ ms[NR] = $1 }
		END {
			if (NR)
				printf "%.2f / %.2f\n", ms[int((NR + 1) / 2)], ms[int((NR * 99 + 99) / 100)]
			else
				print "-"
		}'
}

# count FILTER FILE: the requests of a log for which the awk expression is true
count() {
	awk -F , "NR > 1 && ($1) { nr++ } END { print nr + 0 }" "$2"
}

# figure MODE NAME VALUE: one cell of the table
figure() {
	printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$work/figures"
}

# figure_get MODE NAME
figure_get() {
	awk -F '\t' -v mode="$1" -v name="$2" '$1 == mode && $2 == name { print $3 }' "$work/figures"
}

# table: the figures so far, a column for each mode, and begins a new table
table() {
	awk -F '\t' '
		!($1 in column) { column[$1] = ++nr_columns; modes[nr_columns] = $1 }
		!($2 in row) { row[$2] = ++nr_rows; names[nr_rows] = $2 }
		{ cell[row[$2], column[$1]] = $3 }
		END {
			printf "  %-44s", ""
			for (c = 1; c <= nr_columns; c++)
				printf " %18s", modes[c]
			for (r = 1; r <= nr_rows; r++) {
				printf "\n  %-44s", names[r]
				for (c = 1; c <= nr_columns; c++)
					printf " %18s", (r, c) in cell ? cell[r, c] : ""
			}
			print ""
		}' "$work/figures"
	: >"$work/figures"
}

# bound TEXT VALUE OPERATOR LIMIT: says so when VALUE breaks it, and the script will fail; "-" is no value
bound() {
	if [ "$2" = - ] || ! awk -v value="$2" -v limit="$4" "BEGIN { exit !(value + 0 $3 limit + 0) }"; then
		echo "BROKEN: $1: $2, bound $3 $4"
		nr_broken=$((nr_broken + 1))
	fi
}

# bounds_end: the exit status of the script
bounds_end() {
	[ "$nr_broken" -eq 0 ] || die "$nr_broken bounds are broken"
	echo 'all bounds hold'
}

die() {
	echo "${0##*/}: $*" >&2
	exit 1
}
