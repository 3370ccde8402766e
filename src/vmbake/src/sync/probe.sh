# A sync whose connection was lost may still be moving files.
idle() {
	[ ! -e /var/lib/vmbake/sync/lock ] || flock -n /var/lib/vmbake/sync/lock true || {
		echo "another sync of this machine is running" >&2
		printf 'failed\0%s\0' "query the machine"
		exit 1
	}
}
text() {
	if [ -f "$1" ] && [ ! -L "$1" ]; then
		printf 'file\0'
		cat -- "$1" || exit 1
	else
		printf 'none\0'
	fi
	printf '\0'
}
has() {
	if [ -x "$(command -v "$1" 2>/dev/null)" ]; then printf 'yes\0'; else printf 'no\0'; fi
}
exist() {
	for path; do
		if [ -e "$path" ]; then printf '1\0'; else printf '0\0'; fi
	done
}
states() {
	for unit; do
		state=$(systemctl is-enabled -- "$unit" 2>/dev/null)
		! systemctl is-active --quiet -- "$unit" 2>/dev/null || state="$state active"
		printf '%s\0' "$state"
	done
}
