#!/bin/sh
# Prints the directory with the CRDs of cert-manager and Argo CD as these projects release them, fetched once into .cache/.
# They lie in the projects' Go modules, whose checksums the Go checksum database vouches for; nothing of them is built.
# usage: scripts/crds.sh
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
cert_manager=v1.21.2
argocd=v3.5.7
crds=$root/.cache/crds-$cert_manager-$argocd

# The directory is named last, so that a download cut off half-way is made again.
if [ ! -d "$crds" ]; then
	echo "crds: fetching those of cert-manager $cert_manager and Argo CD $argocd (once)" >&2
	tmp=$root/.cache/crds.tmp.$$
	trap 'rm -rf "$tmp"' EXIT
	mkdir -p "$tmp/crds"
	fetch() { # MODULE@VERSION FILE...
		module=$1
		shift
		(cd "$tmp" && GOMODCACHE=$tmp/mod GOFLAGS=-modcacherw GOWORK=off GO111MODULE=on go mod download "$module")
		(cd "$tmp/mod/$module" && for file in "$@"; do cp $file "$tmp/crds/"; done) # a pattern is one of several files
	}
	fetch "github.com/cert-manager/cert-manager@$cert_manager" 'deploy/crds/*.yaml'
	fetch "github.com/argoproj/argo-cd/v3@$argocd" manifests/crds/application-crd.yaml
	mv "$tmp/crds" "$crds"
fi
echo "$crds"
