#!/bin/sh
# Prints the path of a pinned developer tool, building it into .cache/bin when it is not there yet
# or its module changed. usage: scripts/tool.sh sqlc|staticcheck|deadcode|oapi-codegen|gotestsum|govulncheck|vale|alertmanager|coredns|cyclonedx-gomod|nfpm|docker-compose|etcd|helm|kwok|versitygw|kube-apiserver|kube-controller-manager|kube-proxy|kube-scheduler|kubelet
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
mod=${1:-} cgo=0
case "${1:-}" in
sqlc) pkg=github.com/sqlc-dev/sqlc/cmd/sqlc ;;
staticcheck) pkg=honnef.co/go/tools/cmd/staticcheck ;;
deadcode) pkg=golang.org/x/tools/cmd/deadcode ;;
oapi-codegen) pkg=github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen ;;
gotestsum) pkg=gotest.tools/gotestsum ;;
govulncheck) pkg=golang.org/x/vuln/cmd/govulncheck ;;
vale) pkg=github.com/vale-cli/vale/v3/cmd/vale cgo=1 ;; # its parsers of other languages are in C
alertmanager) pkg=github.com/prometheus/alertmanager/cmd/alertmanager ;;
coredns) pkg=. ;; # a program of our own
cyclonedx-gomod) pkg=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod ;;
nfpm) pkg=github.com/goreleaser/nfpm/v2/cmd/nfpm ;;
docker-compose) pkg=github.com/docker/compose/v5/cmd ;;
etcd) pkg=go.etcd.io/etcd/server/v3 ;;
helm) pkg=helm.sh/helm/v4/cmd/helm ;;
kwok) pkg=sigs.k8s.io/kwok/cmd/kwok ;;
versitygw) pkg=github.com/versity/versitygw/cmd/versitygw ;;
kube-apiserver | kube-controller-manager | kube-proxy | kube-scheduler | kubelet) mod=kubernetes pkg=k8s.io/kubernetes/cmd/$1 ;;
*) echo "tool.sh: unknown tool '${1:-}'; known: sqlc staticcheck deadcode oapi-codegen gotestsum govulncheck vale alertmanager coredns cyclonedx-gomod nfpm docker-compose etcd helm kwok versitygw kube-apiserver kube-controller-manager kube-proxy kube-scheduler kubelet" >&2; exit 2 ;;
esac
flags='-s -w'
mod="$root/e2e/tools/$mod"
# A server built from its module reports v0.0.0, which clients reject as too old.
case "$mod" in */kubernetes) flags="$flags -X k8s.io/component-base/version.gitVersion=$(sed -n 's,^.*k8s.io/kubernetes \(v[0-9.]*\).*,\1,p' "$mod/go.mod" | head -n 1)" ;; esac
sum=$( (go env GOVERSION; echo "$flags"; cat "$mod/go.sum"; [ ! -f "$mod/main.go" ] || cat "$mod/main.go") | sha256sum | cut -c1-12)
bin="$root/.cache/bin/$1-$sum"
if [ ! -x "$bin" ]; then
	echo "building $1 (once)" >&2
	mkdir -p "$root/.cache/bin"
	(cd "$mod" && GOWORK=off CGO_ENABLED=$cgo go build -buildvcs=false -trimpath -ldflags "$flags" -o "$bin.tmp$$" "$pkg")
	mv "$bin.tmp$$" "$bin"
fi
echo "$bin"
