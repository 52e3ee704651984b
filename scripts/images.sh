#!/bin/bash
# Assembles the images of compose.yaml on a machine that can pull none: from Debian packages, Go modules and the Python
# environments of the end-to-end tests. Each image is rebuilt only when its inputs have changed.
# usage: scripts/images.sh [NAME...]    base python stack nats control-plane inference bus-bridge assistant dashboard evidence-api
#                                       worker postgres redis proxy metrics-store tracker orchestrator; default: all of these
#                                       etcd postgres-ha: for compose.ha.yaml, with PLATFORM_HA=true also by default
# Needs Debian, root (for mmdebstrap) and an engine that `docker` reaches. IMAGES_BIN: a folder of built binaries.
set -eu -o pipefail
cd "$(dirname -- "$0")/.."
root=$PWD
prefix=${PLATFORM_IMAGES_PREFIX:-mlp-platform}
tag=${PLATFORM_TAG:-local}
cache=$root/.cache/images
bin=${IMAGES_BIN:-$cache/bin}
offline=$root/deploy/docker/offline
export DOCKER_BUILDKIT=0 DOCKER_CLI_HINTS=false # the engine's own builder: it needs no plugin

say() { printf 'images: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

mkdir -p "$cache"
work=$(mktemp -d -p "$cache")
trap 'rm -rf "$work"' EXIT

# up_to_date TAG INPUTS: whether the image was made from the same inputs.
up_to_date() { [ "$(docker image inspect -f '{{index .Config.Labels "platform.inputs"}}' "$1" 2>/dev/null || true)" = "$2" ]; }

# debian TAG PACKAGES: a Debian root without package manager and documentation.
debian() {
	local image=$1 packages=$2 inputs
	inputs=$(printf '%s' "v3 $packages" | sha256sum | cut -c1-16)
	up_to_date "$image" "$inputs" && return
	have mmdebstrap || {
		[ "$(id -u)" = 0 ] && have apt-get || die "mmdebstrap is missing; on Debian, as root: apt-get install -y --no-install-recommends mmdebstrap"
		DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install mmdebstrap >"$cache/apt.log" 2>&1 || die "mmdebstrap could not be installed; see .cache/images/apt.log"
	}
	say "$image from Debian packages"
	# The files that the packages' scripts would have made.
	mkdir -p "$work/added/etc/ssl/certs"
	cp /etc/ssl/certs/ca-certificates.crt "$work/added/etc/ssl/certs/"
	printf '%s\n' root:x:0:0:root:/:/nonexistent data:x:999:999::/:/nonexistent nonroot:x:65532:65532::/tmp:/nonexistent nobody:x:65534:65534::/:/nonexistent >"$work/added/etc/passwd"
	printf '%s\n' root:x:0: data:x:999: nonroot:x:65532: nobody:x:65534: >"$work/added/etc/group"
	mmdebstrap --quiet --variant=extract --include="$packages" --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' \
		bookworm "$work/root.tar" >"$cache/mmdebstrap.log" 2>&1 ||
		die "the Debian packages could not be fetched; .cache/images/mmdebstrap.log says why: $(tail -n 1 "$cache/mmdebstrap.log")"
	tar --owner=0 --group=0 -rf "$work/root.tar" -C "$work/added" ./etc/ssl/certs/ca-certificates.crt ./etc/passwd ./etc/group
	docker import -c "LABEL platform.inputs=$inputs" "$work/root.tar" "$image" >/dev/null
	rm -rf "$work/root.tar" "$work/added"
}

# add ROOT FILE...: copies programs and the libraries that they load, unless the base image has them.
add() {
	local into=$1 f lib
	shift
	for f; do
		{ echo "$f"; ldd "$f" 2>/dev/null | grep -oE '/[^ ]+' || true; } | while read -r lib; do
			case "$lib" in */libc.so.6 | */ld-linux-x86-64.so.2 | */libm.so.6 | */libdl.so.2 | */libpthread.so.0 | */librt.so.1) [ "$lib" = "$f" ] || continue ;; esac
			local to=$lib
			case "$to" in /lib/* | /bin/* | /lib64/*) to=/usr$to ;; esac
			mkdir -p "$into$(dirname "$to")"
			cp -Ln "$lib" "$into$to"
		done
	done
}

# unpack NAME PACKAGE...: the files of Debian packages, without their dependencies, in $work/NAME.debs.
unpack() {
	local into=$work/$1.debs deb
	shift
	mkdir -p "$into/archives" "$into/root"
	if ! (cd "$into/archives" && apt-get -qq -o APT::Sandbox::User=root download "$@") >"$cache/apt.log" 2>&1; then
		# The lists may be missing or older than the mirror.
		apt-get -qq update >>"$cache/apt.log" 2>&1 || true
		(cd "$into/archives" && apt-get -qq -o APT::Sandbox::User=root download "$@") >>"$cache/apt.log" 2>&1 || die "the Debian packages $* could not be fetched; see .cache/images/apt.log"
	fi
	for deb in "$into"/archives/*.deb; do dpkg -x "$deb" "$into/root"; done
}

# relocate ROOT FROM: moves the files that add took from an unpacked package to their place.
relocate() {
	[ ! -d "$1$2" ] || { cp -r "$1$2/." "$1/" && rm -rf "$1/$(echo "$2" | cut -d/ -f2)"; }
}

# build NAME DOCKERFILE BASE [COMMAND...]: makes the image of the folder $work/NAME.
build() {
	local name=$1 dockerfile=$2 base=$3 image=$prefix/$1:$tag dir=$work/$1 inputs
	shift 3
	mkdir -p "$dir/root" "$dir/empty"
	inputs=$({ cat "$offline/$dockerfile"; docker image inspect -f '{{.Id}}' "$base"; echo "$@"; cd "$dir" && tar -c --sort=name --mtime=@0 --owner=0 --group=0 --exclude=./site . ; cat "$dir/site.id" 2>/dev/null || true; } | sha256sum | cut -c1-16)
	if ! up_to_date "$image" "$inputs"; then
		cp "$offline/$dockerfile" "$dir/Dockerfile"
		[ $# = 0 ] || printf 'ENTRYPOINT ["%s"%s]\n' "$1" "$(shift; [ $# = 0 ] || printf ', "%s"' "$@")" >>"$dir/Dockerfile"
		docker build -q --build-arg BASE="$base" --label "platform.inputs=$inputs" -t "$image" "$dir" >"$cache/build.log" 2>&1 || die "the image $image could not be built: $(tail -n 1 "$cache/build.log")"
		say "$image $(($(docker image inspect -f '{{.Size}}' "$image") / 1000000)) MB"
	fi
	rm -rf "$dir"
}

# service NAME PROGRAM...: an image of our own binaries; it runs the first, with $verb if that is set.
service() {
	local name=$1 program
	shift
	mkdir -p "$work/$name/root/usr/local/bin"
	for program; do cp "$bin/$program" "$work/$name/root/usr/local/bin/"; done
	case "$name" in inference | worker) cp "$root/.cache/onnxruntime/libonnxruntime.so.1" "$work/$name/root/usr/local/bin/" ;; esac
	build "$name" service.Dockerfile "$prefix/base:bookworm" "/usr/local/bin/$1" ${verb:+"$verb"}
}

# site NAME VENV [PACKAGE...]: an environment's packages, without those named and files that a server never reads.
site() {
	local name=$1 venv=$root/.cache/$2 packages
	shift 2
	packages=$(echo "$venv"/lib/python3*/site-packages)
	[ -d "$packages" ] || die "$venv is missing; scripts/setup.sh up makes it"
	mkdir -p "$work/$name/site"
	tar -C "$packages" -c --exclude='__pycache__' --exclude='*/tests' --exclude='./pip' --exclude='./setuptools' "${@/#/--exclude=./}" . | tar -C "$work/$name/site" -x
	{ sha256sum <"$venv/requirements.txt"; echo "$@"; } >"$work/$name/site.id"
}

# add_postgres ROOT [PROGRAM...]: Debian's Postgres 15, with further programs of it.
add_postgres() {
	local into=$1 pg lib program
	shift
	pg=$(ls -d /usr/lib/postgresql/15 2>/dev/null) || die "Debian's Postgres 15 is not installed; scripts/setup.sh test installs it"
	add "$into" "$pg"/bin/{postgres,initdb,pg_isready,pg_dump,pg_restore,psql} /bin/dash
	for program; do add "$into" "$pg/bin/$program"; done
	mkdir -p "$into$pg/lib" "$into/usr/share/postgresql" "$into/usr/lib/locale" "$into/usr/local/bin"
	for lib in "$pg"/lib/*.so; do case "$lib" in *llvmjit*) ;; *) add "$into" "$lib" ;; esac; done
	cp -rL /usr/share/postgresql/15 "$into/usr/share/postgresql/"
	cp -r /usr/lib/locale/C.utf8 "$into/usr/lib/locale/"
	mkdir -p "$into/bin"
	ln -s /usr/bin/dash "$into/bin/sh" # initdb and the start-up need a shell
}

make_image() {
	case "$1" in
	base) debian "$prefix/base:bookworm" libc6,libstdc++6,libgcc-s1,ca-certificates,tzdata,netbase,base-files ;;
	python) debian "$prefix/python:bookworm" libc6,libstdc++6,libgcc-s1,ca-certificates,tzdata,netbase,base-files,python3.11-minimal,libpython3.11-stdlib,zlib1g,dash,coreutils ;;
	stack) service stack stack ;;
	nats) service nats nats-server stack ;;
	control-plane | assistant | bus-bridge) service "$1" "$1" ;;
	inference) service inference inference ;;
	worker) verb=worker service worker trainer stack ;;
	dashboard) service dashboard dashboard-bff ;;
	evidence-api) service evidence-api stack evidence-api ;;
	postgres)
		into=$work/postgres/root
		add_postgres "$into"
		add "$into" /bin/rm /bin/mv /bin/cat
		cp "$offline/docker-entrypoint.sh" "$into/usr/local/bin/"
		build postgres postgres.Dockerfile "$prefix/base:bookworm"
		;;
	redis)
		add "$work/redis/root" "$(command -v redis-server)" "$(command -v redis-cli)"
		build redis redis.Dockerfile "$prefix/base:bookworm"
		;;
	proxy)
		unpack proxy haproxy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1
		from=$work/proxy.debs/root
		LD_LIBRARY_PATH=$from/usr/lib/x86_64-linux-gnu add "$work/proxy/root" "$from/usr/sbin/haproxy"
		relocate "$work/proxy/root" "$from"
		build proxy proxy.Dockerfile "$prefix/base:bookworm"
		rm -rf "$work/proxy.debs"
		;;
	etcd)
		unpack etcd etcd-server etcd-client
		mkdir -p "$work/etcd/root/usr/bin"
		cp "$work"/etcd.debs/root/usr/bin/{etcd,etcdctl} "$work/etcd/root/usr/bin/"
		build etcd etcd.Dockerfile "$prefix/base:bookworm"
		rm -rf "$work/etcd.debs"
		;;
	postgres-ha)
		into=$work/postgres-ha/root
		add_postgres "$into" pg_ctl pg_basebackup pg_rewind pg_controldata
		unpack postgres-ha patroni python3-etcd python3-dnspython python3-psycopg2 python3-yaml python3-cdiff python3-click python3-dateutil \
			python3-pkg-resources python3-prettytable python3-wcwidth python3-psutil python3-urllib3 python3-six libyaml-0-2
		from=$work/postgres-ha.debs/root
		mkdir -p "$into/usr/bin" "$into/usr/lib/python3"
		cp -r "$from/usr/lib/python3/dist-packages" "$into/usr/lib/python3/"
		cp "$from/usr/bin/patroni" "$from/usr/bin/patronictl" "$into/usr/bin/"
		ln -s python3.11 "$into/usr/bin/python3"
		find "$from/usr/lib/python3" -name '*.so' | while read -r lib; do LD_LIBRARY_PATH=$from/usr/lib/x86_64-linux-gnu add "$work/postgres-ha.libs" "$lib"; done
		rm -rf "$work/postgres-ha.libs$from/usr/lib/python3"
		relocate "$work/postgres-ha.libs" "$from"
		cp -r "$work/postgres-ha.libs/." "$into/"
		cp "$offline/post-init.sh" "$into/usr/local/bin/"
		build postgres-ha postgres-ha.Dockerfile "$prefix/python:bookworm"
		rm -rf "$work"/postgres-ha.{debs,libs}
		;;
	metrics-store)
		add "$work/metrics-store/root" "$(command -v prometheus)" "$(command -v promtool)"
		build metrics-store prometheus.Dockerfile "$prefix/base:bookworm"
		;;
	tracker | orchestrator)
		into=$work/$1/root
		mkdir -p "$into/usr/local/bin" "$into/usr/bin" "$into/opt/site"
		[ "$1" = tracker ] || cp "$offline/async_timeout.py" "$into/opt/site/"
		cp "$bin/stack" "$into/usr/local/bin/"
		ln -s python3.11 "$into/usr/bin/python3"
		case "$1" in
		tracker) site tracker venv onnx onnxruntime skl2onnx fontTools/*.so ;;
		orchestrator) site orchestrator venv-prefect ;;
		esac
		build "$1" python.Dockerfile "$prefix/python:bookworm"
		;;
	*) die "unknown image '$1'" ;;
	esac
}

names=("$@")
if [ ${#names[@]} = 0 ]; then
	names=(base python stack nats control-plane inference bus-bridge assistant dashboard evidence-api worker postgres redis proxy metrics-store tracker orchestrator)
	[ "${PLATFORM_HA:-false}" = false ] || names+=(etcd postgres-ha)
fi
docker version >/dev/null 2>&1 || die "no Docker engine answers; make up starts one where it can"
for name in "${names[@]}"; do make_image "$name"; done
