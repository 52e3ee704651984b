#!/bin/sh
# Prints the path of a pinned developer tool, building it into .cache/bin when it is not there yet
# or its module changed. usage: scripts/tool.sh sqlc|staticcheck|oapi-codegen
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
case "${1:-}" in
sqlc) mod=sqlc pkg=github.com/sqlc-dev/sqlc/cmd/sqlc ;;
staticcheck) mod=staticcheck pkg=honnef.co/go/tools/cmd/staticcheck ;;

oapi-codegen) mod=oapi-codegen pkg=github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen ;;
*) echo "tool.sh: unknown tool '${1:-}'; known: sqlc staticcheck oapi-codegen" >&2; exit 2 ;;
esac
sum=$( (go env GOVERSION; cat "$root/e2e/tools/$mod/go.sum") | sha256sum | cut -c1-12)
bin="$root/.cache/bin/$1-$sum"
if [ ! -x "$bin" ]; then
	echo "building $1 (once)" >&2
	mkdir -p "$root/.cache/bin"
	(cd "$root/e2e/tools/$mod" && GOWORK=off CGO_ENABLED=0 go build -o "$bin.tmp$$" "$pkg")
	mv "$bin.tmp$$" "$bin"
fi
echo "$bin"
