#!/bin/sh
# Runs the pinned OpenAPI generator with the arguments given (go generate).
set -eu
dir=$(dirname -- "$0")
mkdir -p "$dir/../.cache"
# One generator at a time: they write the same files.
exec flock "$dir/../.cache/generate.lock" "$("$dir/tool.sh" oapi-codegen)" "$@"
