# shellcheck shell=bash
# skip WHAT WHY: skips a script, or a part of it, that cannot run here; sourced by the checks. `make test` lists all skips
# at its end; in CI it is a failure.
skip() {
    echo "skipped: $1: $2"
    [ -z "${VMBAKE_SKIPPED:-}" ] || echo "$1: $2" >>"$VMBAKE_SKIPPED"
    [ -z "${CI:-}" ] || { echo "FAIL: $1: nothing is skipped in CI" && exit 1; }
}
