#!/bin/sh
# Runs the pinned OpenAPI generator with the arguments given (go generate).
set -eu
exec "$("$(dirname -- "$0")/tool.sh" oapi-codegen)" "$@"
