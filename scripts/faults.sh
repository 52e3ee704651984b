#!/bin/bash
# Kills every process of a real installation under load, and each dependency in turn at each point of a
# retrain; then counts the work that was lost or done twice. About nine minutes. As root it also fills the disk of a
# platform and frees it again.
# usage: [FAULTS_KILLS=10] [FAULTS_COMMANDS=500] [FAULTS_SEED=n] scripts/faults.sh [go test arguments]
set -eu -o pipefail
cd "$(dirname -- "$0")/../e2e"
go test -tags faults -count 1 -timeout 30m -v ./faults "$@"
if [ "$(id -u)" = 0 ]; then
	go test -tags e2e -count 1 -timeout 10m -v ./disk
else
	echo "faults: the full disk is left out, since only root may mount one" >&2
fi
