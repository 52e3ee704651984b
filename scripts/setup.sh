#!/bin/sh
# Installs what a bare Debian machine lacks, and only that. Quiet when there is nothing to do.
# usage: scripts/setup.sh run|test|e2e
#
#   run    Go, a C compiler (for the ONNX Runtime binding) and the ONNX Runtime library
#   test   also a Postgres and a Redis server for the tests
#   e2e    also a Python virtual environment with the real neighbours
#
# Packages come from Debian (as root), Go modules, npm and PyPI; downloads land in .cache/.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
goal=${1:-run}
go_version=1.26.8
ort_version=1.24.3
ort_sha256=92ba8e44d31b80a34f5e805076a044122c3be1fffe0d88ed790de7267b0b2682

say() { printf 'setup: %s\n' "$*" >&2; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

case "$goal" in run | test | e2e) ;; *) die "unknown goal '$goal'; use run, test or e2e" ;; esac
[ "$(uname -s)/$(uname -m)" = Linux/x86_64 ] || die "only Linux on x86_64 is supported by this build; this is $(uname -s)/$(uname -m)"

apt_updated=
apt_install() { # what-for package...
	what=$1
	shift
	have apt-get || die "$what is missing and this machine has no apt-get; install: $*"
	[ "$(id -u)" = 0 ] || die "$what is missing; run once as root: apt-get install -y $*"
	say "installing $* ($what)"
	if [ -z "$apt_updated" ]; then
		apt-get update -qq >.cache/apt.log 2>&1 || die "apt-get update failed; see .cache/apt.log"
		apt_updated=1
	fi
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >>.cache/apt.log 2>&1 ||
		die "apt-get could not install $*; see .cache/apt.log"
}

mkdir -p .cache
[ -f .cache/.gitignore ] || echo '*' >.cache/.gitignore
# One set-up at a time: two make commands in two shells must not write the same files.
have flock && { exec 9>.cache/setup.lock; flock 9; }

PATH="$root/.cache/go/bin:$PATH"
export PATH

# Go: any toolchain from 1.21 on fetches the version go.work asks for by itself. An older or absent
# one gets the official toolchain module, whose checksum the Go checksum database vouches for.
go_minor=$( (go env GOVERSION 2>/dev/null || true) | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
if [ "${go_minor:-0}" -lt 21 ]; then
	have go || apt_install "Go" golang-go ca-certificates
	say "fetching the Go $go_version toolchain (once, about 70 MB)"
	tmp=$(mktemp -d)
	(cd "$tmp" && GOFLAGS=-mod=mod GO111MODULE=on go mod download -json "golang.org/toolchain@v0.0.1-go$go_version.linux-amd64" >mod.json) ||
		die "the Go toolchain could not be fetched; install Go $go_version or newer by hand"
	dir=$(sed -n 's/^.*"Dir": "\(.*\)".*$/\1/p' "$tmp/mod.json")
	rm -rf .cache/go.tmp .cache/go
	cp -R "$dir" .cache/go.tmp
	chmod -R u+w .cache/go.tmp
	chmod +x .cache/go.tmp/bin/* .cache/go.tmp/pkg/tool/*/* 2>/dev/null || true
	mv .cache/go.tmp .cache/go
	rm -rf "$tmp"
fi

have gcc || apt_install "a C compiler" gcc libc6-dev
[ -e /usr/include/stdlib.h ] || apt_install "the C library headers" libc6-dev
have git || apt_install "git" git

# ONNX Runtime: the shared library inside the npm package, pinned by digest.
ort=.cache/onnxruntime/libonnxruntime.so.1
if ! [ -f "$ort" ] || ! echo "$ort_sha256  $ort" | sha256sum -c --status 2>/dev/null; then
	have npm || apt_install "npm, which fetches the ONNX Runtime library" npm
	say "fetching ONNX Runtime $ort_version (once, about 86 MB)"
	tmp=$(mktemp -d)
	(cd "$tmp" && npm pack --silent "onnxruntime-node@$ort_version" >/dev/null && tar xzf onnxruntime-node-*.tgz package/bin/napi-v6/linux/x64/libonnxruntime.so.1) ||
		die "ONNX Runtime could not be fetched from the npm registry; check the network, then run this again"
	echo "$ort_sha256  $tmp/package/bin/napi-v6/linux/x64/libonnxruntime.so.1" | sha256sum -c --status ||
		die "the fetched ONNX Runtime library has an unexpected digest; refusing it"
	mkdir -p .cache/onnxruntime
	mv "$tmp/package/bin/napi-v6/linux/x64/libonnxruntime.so.1" "$ort.tmp$$"
	mv "$ort.tmp$$" "$ort"
	rm -rf "$tmp"
fi

if [ "$goal" = test ] || [ "$goal" = e2e ]; then
	have postgres || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || apt_install "a Postgres server for the tests" postgresql
	have redis-server || apt_install "a Redis server for the tests" redis-server
fi

if [ "$goal" = e2e ]; then
	have python3 && python3 -c 'import venv, ensurepip' 2>/dev/null || apt_install "Python" python3 python3-venv
	sh scripts/venv.sh
fi
