#!/bin/bash
# Assembles the images of compose.yaml on a machine that can pull none: from Debian packages, Go modules and the Python
# environments of the end-to-end tests. Each image is made again only when what it holds has changed.
# usage: scripts/images.sh [NAME...]    base python stack nats control-plane inference bus-bridge assistant dashboard evidence-api
#                                       postgres redis metrics-store tracker orchestrator worker; default: all
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

# up_to_date TAG INPUTS: whether the image was made from the same.
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
	# What the packages' scripts would have made.
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

# service NAME PROGRAM...: an image of our own binaries; the first is what it runs.
service() {
	local name=$1 program
	shift
	mkdir -p "$work/$name/root/usr/local/bin"
	for program; do cp "$bin/$program" "$work/$name/root/usr/local/bin/"; done
	[ "$name" != inference ] || cp "$root/.cache/onnxruntime/libonnxruntime.so.1" "$work/$name/root/usr/local/bin/"
	build "$name" service.Dockerfile "$prefix/base:bookworm" "/usr/local/bin/$1"
}

# site NAME VENV [PACKAGE...]: the packages of an environment, without those named and what a server never reads.
site() {
	local name=$1 venv=$root/.cache/$2 packages
	shift 2
	packages=$(echo "$venv"/lib/python3*/site-packages)
	[ -d "$packages" ] || die "$venv is missing; scripts/setup.sh e2e makes it"
	mkdir -p "$work/$name/site"
	tar -C "$packages" -c --exclude='__pycache__' --exclude='*/tests' --exclude='./pip' --exclude='./setuptools' "${@/#/--exclude=./}" . | tar -C "$work/$name/site" -x
	{ sha256sum <"$venv/requirements.txt"; echo "$@"; } >"$work/$name/site.id"
}

make_image() {
	case "$1" in
	base) debian "$prefix/base:bookworm" libc6,libstdc++6,libgcc-s1,ca-certificates,tzdata,netbase,base-files ;;
	python) debian "$prefix/python:bookworm" libc6,libstdc++6,libgcc-s1,ca-certificates,tzdata,netbase,base-files,python3.11-minimal,libpython3.11-stdlib,zlib1g,dash,coreutils ;;
	stack) service stack stack ;;
	nats) service nats nats-server stack ;;
	control-plane | assistant | bus-bridge) service "$1" "$1" ;;
	inference) service inference inference ;;
	dashboard) service dashboard dashboard-bff ;;
	evidence-api) service evidence-api stack evidence-api ;;
	postgres)
		local pg
		pg=$(ls -d /usr/lib/postgresql/15 2>/dev/null) || die "Debian's Postgres 15 is not installed; scripts/setup.sh test installs it"
		into=$work/postgres/root
		add "$into" "$pg"/bin/{postgres,initdb,pg_isready,pg_dump,pg_restore,psql} /bin/dash /bin/rm /bin/mv /bin/cat
		mkdir -p "$into$pg/lib" "$into/usr/share/postgresql" "$into/usr/lib/locale" "$into/usr/local/bin"
		for lib in "$pg"/lib/*.so; do case "$lib" in *llvmjit*) ;; *) add "$into" "$lib" ;; esac; done
		cp -rL /usr/share/postgresql/15 "$into/usr/share/postgresql/"
		cp -r /usr/lib/locale/C.utf8 "$into/usr/lib/locale/"
		mkdir -p "$into/bin"
		ln -s /usr/bin/dash "$into/bin/sh" # initdb and the start-up need a shell
		cp "$offline/docker-entrypoint.sh" "$into/usr/local/bin/"
		build postgres postgres.Dockerfile "$prefix/base:bookworm"
		;;
	redis)
		add "$work/redis/root" "$(command -v redis-server)" "$(command -v redis-cli)"
		build redis redis.Dockerfile "$prefix/base:bookworm"
		;;
	metrics-store)
		add "$work/metrics-store/root" "$(command -v prometheus)" "$(command -v promtool)"
		build metrics-store prometheus.Dockerfile "$prefix/base:bookworm"
		;;
	tracker | orchestrator | worker)
		into=$work/$1/root
		mkdir -p "$into/usr/local/bin" "$into/usr/bin" "$into/opt/site"
		[ "$1" = tracker ] || cp "$offline/async_timeout.py" "$into/opt/site/"
		cp "$bin/stack" "$into/usr/local/bin/"
		ln -s python3.11 "$into/usr/bin/python3"
		case "$1" in
		tracker) site tracker venv onnx onnxruntime skl2onnx fontTools/*.so ;;
		orchestrator) site orchestrator venv-prefect ;;
		worker)
			site worker venv-prefect
			cp "$bin/trainer" "$root/.cache/onnxruntime/libonnxruntime.so.1" "$into/usr/local/bin/"
			mkdir -p "$into/usr/local/share/worker"
			cp "$root/deploy/docker/worker/flow.py" "$into/usr/local/share/worker/"
			;;
		esac
		if [ "$1" = worker ]; then
			build worker python.Dockerfile "$prefix/python:bookworm" /usr/bin/python3 /usr/local/share/worker/flow.py
		else
			build "$1" python.Dockerfile "$prefix/python:bookworm"
		fi
		;;
	*) die "unknown image '$1'" ;;
	esac
}

names=("$@")
[ ${#names[@]} -gt 0 ] || names=(base python stack nats control-plane inference bus-bridge assistant dashboard evidence-api postgres redis metrics-store tracker orchestrator worker)
docker version >/dev/null 2>&1 || die "no Docker engine answers; make up starts one where it can"
for name in "${names[@]}"; do make_image "$name"; done
