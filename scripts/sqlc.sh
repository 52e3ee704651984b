#!/bin/sh
# Regenerates the typed queries of the store folder it is run in (go generate).
set -eu
exec "$("$(dirname -- "$0")/tool.sh" sqlc)" generate
