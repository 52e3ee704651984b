#!/bin/bash
# Checks the English of comments, strings, documents and the web UI with Vale; see .vale/styles/House.
# usage: scripts/prose.sh [-list]   every match is printed with -list
set -eu -o pipefail
cd "$(dirname -- "$0")/.."
go run ./e2e/prose "$@" "$(scripts/tool.sh vale)"
