stage=/var/lib/vmbake/sync
failed() {
	printf 'failed\0%s\0' "$*"
	exit 1
}
# Whether a process, as rsync does, works in a directory.
receives() {
	for process in /proc/[0-9]*; do
		case $(readlink -- "$process/cwd" 2>/dev/null) in "$1" | "$1"/*) return 0 ;; esac
	done
	return 1
}
# One sync at a time, and only on what it has seen: files have numbers, and a state forgets those of another sync.
begin() {
	files=$stage/$1
	trap 'rm -rf -- "$files"' EXIT
	exec 9>"$stage/lock" || failed "write $stage/lock"
	flock -n 9 || {
		echo "another sync of this machine is running" >&2
		failed "change the machine"
	}
	if [ "$( (sha256sum <"$stage/state.json" | cut -c1-64) 2>/dev/null)" != "$2" ]; then
		echo "another sync of this machine has just changed it" >&2
		failed "change the machine"
	fi
	find "$stage" -mindepth 1 -maxdepth 1 -type d -name 'vmbake-sync-*' ! -name "$1" -mmin +5 | while read -r old; do
		receives "$old" || rm -rf -- "$old"
	done
}
# The kernel follows no link once a directory is the working directory: what it is then called must be what was asked for.
enter() {
	cd -P -- "$1" && [ "$(pwd -P)" = "$1" ] || failed "enter $1"
}
directory() {
	enter "$4"
	[ -d "./$5" ] && [ ! -L "./$5" ] && return
	rm -rf -- "$stage/new" && mkdir -m 0700 -- "$stage/new" && chown -- "$2:$3" "$stage/new" && chmod -- "$1" "$stage/new" &&
		mv -fT -- "$stage/new" "./$5" || failed "make directory $4/$5"
}
# A file gets its owner and mode where root alone can change it, and takes its place by rename(2), which replaces a link instead of following it.
place() {
	enter "$5"
	{ [ ! -d "./$6" ] || [ -L "./$6" ]; } || failed "replace directory $5/$6"
	chown -- "$3:$4" "$files/$1" && chmod -- "$2" "$files/$1" && mv -fT -- "$files/$1" "./$6" || failed "write $5/$6"
}
link() {
	enter "$2"
	{ [ ! -d "./$3" ] || [ -L "./$3" ]; } || failed "replace directory $2/$3"
	rm -f -- "$stage/link" && ln -sT -- "$1" "$stage/link" && mv -fT -- "$stage/link" "./$3" || failed "write link $2/$3"
}
delete() {
	enter "$2"
	if [ -L "./$3" ]; then
		found=$(readlink -n -- "./$3" | sha256sum)
	elif [ -f "./$3" ]; then
		found=$(sha256sum <"./$3")
	else
		return 0
	fi
	[ "${found%% *}" = "$1" ] || return 0
	rm -f -- "./$3" || failed "remove $2/$3"
}
delete_directory() {
	enter "$1"
	rmdir -- "./$2" || failed "remove directory $1/$2"
}
# systemd neither stops nor disables a unit whose file is gone. Where it has another file, it goes on with that.
retire() {
	[ ! -L "$1" ] || return 0
	for folder in /etc /run /usr/local/lib /usr/lib; do
		[ "$folder/systemd/system/$2" = "$1" ] || [ ! -e "$folder/systemd/system/$2" ] || return 0
	done
	case $2 in
	*@.*)
		run systemctl disable -- "$2"
		pattern=$(printf '%s' "${2%%@.*}@*.${2##*@.}" | sed 's/\\/\\\\/g')
		for instance in $(systemctl list-units --plain --no-legend --full -- "$pattern" | cut -d ' ' -f 1); do
			# Another file can define an instance.
			[ "$(systemctl show -p FragmentPath --value -- "$instance")" = "$1" ] || continue
			run systemctl stop -- "$instance"
			systemctl reset-failed -- "$instance" 2>/dev/null
		done
		;;
	*)
		run systemctl disable --now -- "$2"
		# Without its file, a failed unit would remain listed. For other units, this fails, because they are unloaded.
		systemctl reset-failed -- "$2" 2>/dev/null
		;;
	esac
	return 0
}
record() {
	mv -fT -- "$files/$1" "$stage/state.json" || failed "write $stage/state.json"
}
run() {
	cd / && "$@" >/dev/null || failed "$*"
}
configure() {
	cd / && /opt/podplane/bin/firstboot configure >/dev/null
	case $? in
	0) state=configured ;;
	3) state=waiting ;;
	*) failed /opt/podplane/bin/firstboot configure ;;
	esac
	printf '%s\0' "$state"
}
# systemd counts starts until reset-failed: frequent syncs must not reach a start limit.
restart() {
	[ $# -eq 0 ] || systemctl reset-failed -- "$@" 2>/dev/null
	[ "$state" = waiting ] || run /opt/podplane/bin/firstboot restart
}
# What a socket has started keeps its port, so that systemd does not listen again.
restart_socket() {
	services=
	for service in $(systemctl show -p Triggers --value -- "$1"); do
		! systemctl is-active --quiet -- "$service" || services="$services $service"
	done
	echo "$1" >>"$stage/stopped"
	run systemctl stop -- "$1" $services
	run systemctl start -- "$1"
	[ -z "$services" ] || run systemctl start -- $services
}
# Units that an earlier sync has stopped and could not start.
resume() {
	[ -e "$stage/stopped" ] || return 0
	while read -r stopped; do
		! systemctl cat -- "$stopped" >/dev/null 2>&1 || run systemctl start -- "$stopped"
	done <"$stage/stopped"
	rm -f -- "$stage/stopped"
}
restart_unit() {
	systemctl cat -- "$1" >/dev/null 2>&1 || return 0
	# Such as the slices of systemd, whose new settings apply without a restart.
	[ "$(systemctl show -p CanStop --value -- "$1")" != no ] || return 0
	case $1 in
	*.slice) return 0 ;;
	*.socket)
		! systemctl is-active --quiet -- "$1" || restart_socket "$1"
		return
		;;
	esac
	# A unit that failed was running, too.
	if systemctl is-failed --quiet -- "$1"; then
		systemctl reset-failed -- "$1" 2>/dev/null
		run systemctl start -- "$1"
	else
		run systemctl try-restart -- "$1"
	fi
}
# A program that cannot be executed, or exits at once, fails after systemctl has succeeded.
running() {
	sleep 1
	failed_units=
	for unit; do
		result=$(systemctl show -p Result --value -- "$unit")
		case $(systemctl show -p ActiveState --value -- "$unit")/$(systemctl show -p SubState --value -- "$unit") in
		failed/* | */auto-restart*) ;;
		*) continue ;;
		esac
		echo "unit $unit has failed: $result" >&2
		failed_units="$failed_units $unit"
	done
	[ -z "$failed_units" ] || failed "start$failed_units"
}
