#!/bin/sh
# Prints the path of a pinned developer tool, building it into .cache/bin when it is not there yet
# or its module changed. usage: scripts/tool.sh sqlc|staticcheck|deadcode|oapi-codegen|gotestsum|govulncheck|docker-compose|etcd|kwok|versitygw|kube-apiserver|kube-controller-manager|kube-scheduler
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
mod=${1:-}
case "${1:-}" in
sqlc) pkg=github.com/sqlc-dev/sqlc/cmd/sqlc ;;
staticcheck) pkg=honnef.co/go/tools/cmd/staticcheck ;;
deadcode) pkg=golang.org/x/tools/cmd/deadcode ;;
oapi-codegen) pkg=github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen ;;
gotestsum) pkg=gotest.tools/gotestsum ;;
govulncheck) pkg=golang.org/x/vuln/cmd/govulncheck ;;
docker-compose) pkg=github.com/docker/compose/v5/cmd ;;
etcd) pkg=go.etcd.io/etcd/server/v3 ;;
kwok) pkg=sigs.k8s.io/kwok/cmd/kwok ;;
versitygw) pkg=github.com/versity/versitygw/cmd/versitygw ;;
kube-apiserver | kube-controller-manager | kube-scheduler) mod=kubernetes pkg=k8s.io/kubernetes/cmd/$1 ;;
*) echo "tool.sh: unknown tool '${1:-}'; known: sqlc staticcheck deadcode oapi-codegen gotestsum govulncheck docker-compose etcd kwok versitygw kube-apiserver kube-controller-manager kube-scheduler" >&2; exit 2 ;;
esac
mod="$root/e2e/tools/$mod"
sum=$( (go env GOVERSION; cat "$mod/go.sum") | sha256sum | cut -c1-12)
bin="$root/.cache/bin/$1-$sum"
if [ ! -x "$bin" ]; then
	echo "building $1 (once)" >&2
	mkdir -p "$root/.cache/bin"
	(cd "$mod" && GOWORK=off CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags '-s -w' -o "$bin.tmp$$" "$pkg")
	mv "$bin.tmp$$" "$bin"
fi
echo "$bin"
