stage=/var/lib/vmbake/sync
failed() {
	printf 'failed\0%s\0' "$*"
	exit 1
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
	chown -- "$3:$4" "$stage/files/$1" && chmod -- "$2" "$stage/files/$1" && mv -fT -- "$stage/files/$1" "./$6" || failed "write $5/$6"
}
link() {
	enter "$2"
	{ [ ! -e "./$3" ] || [ -L "./$3" ]; } || failed "replace $2/$3"
	rm -f -- "$stage/link" && ln -sT -- "$1" "$stage/link" && mv -fT -- "$stage/link" "./$3" || failed "write link $2/$3"
}
delete() {
	enter "$2"
	[ -f "./$3" ] && [ ! -L "./$3" ] || return 0
	[ "$(sha256sum <"./$3" | cut -c1-64)" = "$1" ] || return 0
	rm -f -- "./$3" || failed "remove $2/$3"
}
record() {
	mv -fT -- "$stage/files/$1" "$stage/state.json" || failed "write $stage/state.json"
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
restart() {
	[ "$state" = waiting ] || run /opt/podplane/bin/firstboot restart
}
