#!/bin/sh
# Regenerates the typed queries of the store folder it is run in (go generate).
set -eu
dir=$(dirname -- "$0")
mkdir -p "$dir/../.cache"
# One generator at a time: they write the same files.
exec flock "$dir/../.cache/generate.lock" "$("$dir/tool.sh" sqlc)" generate
