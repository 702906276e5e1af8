# shellcheck shell=bash
# bash completion of socksteer. What there is to choose from it asks the program itself: commands, options,
# policies and settings of its help, groups of "list" and "status", in silence where those are not allowed.

_socksteer_commands() {
	"$1" help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p'
}

# The options of one command.
_socksteer_options() {
	"$1" help "$2" 2>/dev/null |
		sed -n '/^Options:/,/^$/{s/^  -[a-z], /      /; s/^      \(--[a-z-]*\).*/\1/p}'
}

_socksteer_policies() {
	"$1" help policy 2>/dev/null | sed -n '/^Policies:/,/^$/s/^  \([a-z0-9-]*\) .*/\1/p'
}

_socksteer_settings() {
	"$1" help "$2" 2>/dev/null | sed -n '/^Settings:/,/^$/s/^  \([a-z-]*=\).*/\1/p'
}

# Groups that are steered ("status") or that could be ("list"), from the JSON without any other tool.
_socksteer_groups() {
	"$1" "$2" --json 2>/dev/null | awk -F '"' -v all="$([ "$2" = list ] || echo 1)" '
		$2 == "address" { address = $4 }
		$2 == "port" {
			gsub(/[^0-9]/, "", $3)
			group = (address ~ /:/ ? "[" address "]" : address) ":" $3
			if (all)
				print group
		}
		$2 == "steerable" && $3 ~ /true/ && !all { print group }' | sort -u
}

# Workers of all steered groups as COMMAND:PID, each once. Names with blanks or worse have to be typed.
_socksteer_workers() {
	"$1" status --json 2>/dev/null | awk -F '"' '
		$2 == "pid" { pid = $3; gsub(/[^0-9]/, "", pid) }
		$2 == "comm" && pid && $4 ~ /^[A-Za-z0-9._\/-]+$/ { print $4 ":" pid }' | sort -u
}

# What may stand at a position among the words after the command, options left out.
_socksteer_arguments() {
	local program=$1 command=$2 position=$3
	case $command in
	help) [ "$position" -gt 1 ] || _socksteer_commands "$program" ;;
	attach | run) _socksteer_groups "$program" list ;;
	version | list | metrics) ;;
	*)
		if [ "$position" -eq 1 ]; then
			_socksteer_groups "$program" status
		elif [ "$command" = policy ] && [ "$position" -eq 2 ]; then
			_socksteer_policies "$program"
		elif [[ $command =~ ^(drain|resume|weight|rescue)$ ]]; then
			[ "$position" -ne 2 ] || _socksteer_workers "$program"
		else
			_socksteer_settings "$program" "$command"
		fi
		;;
	esac
}

_socksteer_values() {
	local program=$1 option=$2
	case $option in
	--policy) _socksteer_policies "$program" ;;
	--pid) compgen -f -X '!/proc/[0-9]*' /proc/ | sed 's|/proc/||' ;;
	--match) printf '%s\n' address= command= user= ;;
	--netns) compgen -f "${3:-/run/netns/}" ;;
	--config) compgen -f "$3" ;;
	esac
}

# How many words that are no options stand between the command and the cursor, the word there included.
_socksteer_position() {
	local words=("$@") count=1 i
	for ((i = 0; i < ${#words[@]}; i++)); do
		case ${words[i]} in
		--policy | --pid | --netns | --config | --match | --metrics | --interval | --width | --for) i=$((i + 1)) ;;
		-*) ;;
		*) count=$((count + 1)) ;;
		esac
	done
	echo "$count"
}

_socksteer() {
	local cur prev words cword program list
	_get_comp_words_by_ref -n := cur prev words cword || return
	program=${words[0]}
	COMPREPLY=()
	if [ "$cword" -eq 1 ]; then
		list=$(_socksteer_commands "$program")
	elif [[ $cur == --*=* ]]; then
		# bash takes only what comes after the = for the word.
		list=$(_socksteer_values "$program" "${cur%%=*}" "${cur#*=}")
		cur=${cur#*=}
	elif [[ $prev == --* ]] && list=$(_socksteer_values "$program" "$prev" "$cur") && [ -n "$list" ]; then
		:
	elif [[ $cur == -* ]]; then
		list=$(_socksteer_options "$program" "${words[1]}")
	else
		list=$(_socksteer_arguments "$program" "${words[1]}" \
			"$(_socksteer_position "${words[@]:2:cword-2}")")
	fi
	mapfile -t COMPREPLY < <(compgen -W "$list" -- "$cur")
	[[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null
	__ltrim_colon_completions "$cur"
}

complete -F _socksteer socksteer
