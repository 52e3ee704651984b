#!/bin/bash
# Runs the tests of every module with the race detector; a skipped test is a failure. The packages that took longest
# are printed last.
# usage: scripts/test.sh [go test arguments]   (default: all modules)
set -eu -o pipefail
cd "$(dirname -- "$0")/.."
gotestsum=$(scripts/tool.sh gotestsum)
out=.cache/test.json
args=("$@")
[ ${#args[@]} -gt 0 ] || args=(work)
# The race detector makes a process wait a second at its exit; the tests start thousands of processes.
export GORACE=atexit_sleep_ms=10
# Only root can make files of other users; the tests that need them are built for root alone.
tags=()
[ "$(id -u)" != 0 ] || tags=(-tags root)
# One Postgres and one Redis for all packages.
go build -o .cache/bin/testservers ./libs/testenv/testservers
# -p 3: a package that waits leaves its core to others. -vet=off: make lint vets everything, tests included.
status=0
.cache/bin/testservers "$gotestsum" --format pkgname-and-test-fails --hide-summary=skipped --jsonfile "$out" -- \
	-race -p 3 -vet=off -timeout 30m "${tags[@]}" "${args[@]}" || status=$?
scripts/slowest.sh "$out"
[ $status = 0 ] || exit $status
if skipped=$(grep -E '"Action":"skip".*"Test":' "$out"); then
	echo "skipped tests are failures here:" >&2
	echo "$skipped" >&2
	exit 1
fi
