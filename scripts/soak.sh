#!/bin/bash
# Loads the running platform for SOAK_MINUTES (20): predictions, notices with decisions, trainings, questions, views,
# streams. Prints how memory and goroutines of each process changed, and fails if they keep growing or anything failed.
# usage: [SOAK_MINUTES=20] [SOAK_TARGET=containers|platform] scripts/soak.sh [go test arguments]
set -eu -o pipefail
cd "$(dirname -- "$0")/.."
minutes=${SOAK_MINUTES:-20}
[[ $minutes =~ ^[1-9][0-9]{0,3}$ ]] || { echo "soak: SOAK_MINUTES must be a number of minutes, not '$minutes'" >&2; exit 2; }
case "${SOAK_TARGET:-containers}" in
containers) addresses=$(scripts/up.sh env) ;;
platform) addresses=$(bin/platform env) ;;
*) echo "soak: SOAK_TARGET must be containers or platform, not '$SOAK_TARGET'" >&2; exit 2 ;;
esac
eval "$addresses"
cd e2e
go test -tags soak -count 1 -timeout $((minutes + 30))m -v ./soak "$@"
