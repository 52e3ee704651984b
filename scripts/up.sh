#!/bin/bash
# The platform as containers. usage: scripts/up.sh up|down [--volumes]|backup FILE|restore FILE|save NAME...|logs [SERVICE...]|env|password [viewer]|compose ARGUMENTS...|docker ARGUMENTS...
# Finds a Docker engine or, on Debian as root, starts a private one below .cache/docker; builds the images, or assembles
# equivalents where no registry can be reached; waits until everything is healthy. docs/compose.md lists every variable.
set -eu -o pipefail
invoked_from=$PWD
cd "$(dirname -- "$0")/.."
root=$PWD
mkdir -p "$root/.cache/docker"
engine=$(cd "$root/.cache/docker" && pwd -P) # containers do not start from a path with a symbolic link
state=$root/.data/compose
export PLATFORM_SECRETS_DIR=${PLATFORM_SECRETS_DIR:-$state/secrets} PLATFORM_IMAGES_PREFIX=${PLATFORM_IMAGES_PREFIX:-mlp-platform} PLATFORM_TAG=${PLATFORM_TAG:-local}
export COMPOSE_PROJECT_NAME=${COMPOSE_PROJECT_NAME:-mlp-platform} DOCKER_CLI_HINTS=false
[ ! -f "$state/.env" ] || { set -a; . "$state/.env"; set +a; }

say() { printf '%s\n' "$*" >&2; }
die() { say "up: $*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# lock_engine keeps other runs from starting or ending our engine until this ends.
lock_engine() {
	[ "${engine_locked:-}" != yes ] || return 0
	[ "${DOCKER_HOST:-}" = "unix://$engine/run/docker.sock" ] && have flock || return 0
	exec 8>>"$engine/lock"
	flock 8
	engine_locked=yes
}

# find_engine find|end|start [OPTION...]: to end or start one holds the lock; options are for a daemon that is started.
find_engine() {
	have docker || die "no Docker here: install Docker Engine 20.10 or newer (on Debian, as root: apt-get install -y --no-install-recommends docker.io), or use make run, which needs none"
	docker version >/dev/null 2>&1 && return
	# An engine that an earlier make up started.
	[ -n "${DOCKER_HOST:-}" ] || export DOCKER_HOST=unix://$engine/run/docker.sock
	[ "$1" = find ] || lock_engine
	docker version >/dev/null 2>&1 && return
	[ "$DOCKER_HOST" = "unix://$engine/run/docker.sock" ] || die "no Docker engine answers at DOCKER_HOST=$DOCKER_HOST"
	[ "$1" = start ] || die "no stack runs here: no Docker engine answers"
	PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
	{ [ "$(id -u)" = 0 ] && have dockerd && have iptables; } || die "no Docker engine answers: start it (systemctl start docker), or run this as root where dockerd and iptables are installed (on Debian: apt-get install -y --no-install-recommends docker.io iptables)"
	say "no Docker engine answers: starting one with its data below .cache/docker; make down ends it"
	mkdir -p "$engine/run"
	setsid dockerd --data-root "$engine/data" --exec-root "$engine/run/exec" -H "$DOCKER_HOST" -p "$engine/run/docker.pid" "${@:2}" >"$engine/run/dockerd.log" 2>&1 </dev/null 8>&- &
	local pid=$! i
	engine_started=yes
	for i in $(seq 150); do
		docker version >/dev/null 2>&1 && return
		kill -0 "$pid" 2>/dev/null || die "dockerd ended: $(tail -n 1 "$engine/run/dockerd.log")"
		sleep 0.2
	done
	die "dockerd did not answer within 30 s: $(tail -n 1 "$engine/run/dockerd.log")"
}

# compose is the plugin, or the module that e2e/tools pins.
find_compose() {
	local version major minor
	version=$(docker compose version --short 2>/dev/null | sed 's/^v//') || version=
	if [ -n "$version" ]; then
		IFS=. read -r major minor _ <<<"$version"
		if [ "$major" -gt 2 ] || { [ "$major" = 2 ] && [ "$minor" -ge 20 ]; }; then
			compose_command=(docker compose)
			return
		fi
		have go || die "docker compose $version is too old: 2.20 or newer is needed"
	fi
	have go || scripts/setup.sh run
	PATH=$root/.cache/go/bin:$PATH
	compose_command=("$(scripts/tool.sh docker-compose)")
}

stop_engine() {
	local pid
	pid=$(cat "$engine/run/docker.pid") || return 0 # it ended by itself
	kill "$pid" 2>/dev/null || return 0
	while kill -0 "$pid" 2>/dev/null; do sleep 0.2; done
}

files=(-f "$root/compose.yaml")
case "${PLATFORM_HA:-false}" in
true) files+=(-f "$root/compose.ha.yaml") ;;
false) ;;
*) die "PLATFORM_HA must be true or false, not '$PLATFORM_HA'" ;;
esac

compose() { "${compose_command[@]}" "${files[@]}" --project-directory "$root" "$@"; }
running() { [ -n "$(compose ps -q 2>/dev/null)" ]; }

# check_ports reports each published port that another program uses.
check_ports() {
	local variable port used=
	for variable in DASHBOARD_PORT=8099 DASHBOARD_TOOLS_PORT=8098 CONTROL_PLANE_PORT=18002 INFERENCE_PORT=18001 ASSISTANT_PORT=18004 BUS_BRIDGE_PORT=18003 EVIDENCE_API_PORT=8770 TRACKER_PORT=15000 ORCHESTRATOR_PORT=14200; do
		port=${variable#*=}
		variable=${variable%=*}
		port=${!variable:-$port}
		[[ $port =~ ^[0-9]+$ ]] && [ "$port" -gt 0 ] && [ "$port" -lt 65536 ] || die "$variable must be a port of 1 to 65535, not '$port'"
		if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then used="$used $port ($variable)"; fi
	done
	[ -z "$used" ] || die "in use by other programs:$used; stop them (make stop, if it is the one process), or set the variables"
}

# secrets makes missing secrets; a weak one is refused before anything starts.
make_secrets() {
	local said
	mkdir -p "$PLATFORM_SECRETS_DIR"
	chmod 700 "$PLATFORM_SECRETS_DIR" 2>/dev/null || true
	said=$(stack_tool secrets /secrets 2>&1) || die "the secrets in $PLATFORM_SECRETS_DIR are refused: ${said#stack: }"
}

# stack_tool runs the tool of the containers with the secrets, as root: each file belongs to its reader.
stack_tool() {
	docker run --rm --network none --read-only --cap-drop ALL --cap-add CHOWN --cap-add DAC_OVERRIDE --cap-add FOWNER --user 0:0 \
		-e DASHBOARD_PORT -e CONTROL_PLANE_PORT -e INFERENCE_PORT -e TRACKER_PORT -e ORCHESTRATOR_PORT -e EVIDENCE_API_PORT -e ASSISTANT_PORT -e BUS_BRIDGE_PORT -e DATA_NETWORK \
		-v "$PLATFORM_SECRETS_DIR:/secrets" "$PLATFORM_IMAGES_PREFIX/stack:$PLATFORM_TAG" "$@"
}

# make_images [NAME...]: builds, where a registry answers; assembles, where none does.
make_images() {
	how=${PLATFORM_IMAGES:-auto}
	if [ "$how" = auto ]; then
		if timeout 20 docker pull -q "${BASE_IMAGE:-gcr.io/distroless/cc-debian12:nonroot}" >/dev/null 2>&1; then how=build; else how=assemble; fi
	fi
	case "$how" in
	build) compose build ;;
	assemble)
		say "no registry can be reached: assembling equivalents from Debian packages, Go modules and Python environments (Postgres 15, Redis 7, HAProxy 2.6, Prometheus 2)"
		say "left out, since they come as images only: dashboards (Grafana), object-store (versitygw); the tracker keeps artifacts on its volume"
		if [ -z "${IMAGES_BIN:-}" ]; then
			scripts/setup.sh up
			scripts/web.sh
			scripts/pages.sh
			export IMAGES_BIN=$root/.cache/images/bin
			say "building the binaries"
			PATH=$root/.cache/go/bin:$PATH GOFLAGS=-buildvcs=false scripts/binaries.sh "$IMAGES_BIN" "$(git describe --tags --always --dirty 2>/dev/null || echo dev)"
		fi
		scripts/images.sh "$@"
		;;
	none) ;;
	*) die "PLATFORM_IMAGES must be auto, build, assemble or none, not '$how'" ;;
	esac
}

# make_stack_images also records which images replace those of a registry.
make_stack_images() {
	make_images
	[ "$how" = build ] || use_assembled
}

use_assembled() {
	mkdir -p "$state"
	local images="POSTGRES_IMAGE=$PLATFORM_IMAGES_PREFIX/postgres:$PLATFORM_TAG
REDIS_IMAGE=$PLATFORM_IMAGES_PREFIX/redis:$PLATFORM_TAG
PROXY_IMAGE=$PLATFORM_IMAGES_PREFIX/proxy:$PLATFORM_TAG
METRICS_STORE_IMAGE=$PLATFORM_IMAGES_PREFIX/metrics-store:$PLATFORM_TAG
POSTGRES_HA_IMAGE=$PLATFORM_IMAGES_PREFIX/postgres-ha:$PLATFORM_TAG
ETCD_IMAGE=$PLATFORM_IMAGES_PREFIX/etcd:$PLATFORM_TAG"
	(umask 077; { grep -vE '^(POSTGRES|REDIS|PROXY|METRICS_STORE|POSTGRES_HA|ETCD)_IMAGE=' "$state/.env" 2>/dev/null || true; echo "$images"; } >"$state/.env.new"; mv "$state/.env.new" "$state/.env")
	set -a; . "$state/.env"; set +a
}

# why prints the last log line of each unhealthy container.
why() {
	local line service state health code
	while IFS='|' read -r service state health code; do
		[ "$state" = running ] && [ "$health" != unhealthy ] && [ "$health" != starting ] && continue
		[ "$state" = exited ] && [ "$code" = 0 ] && continue
		[ "$state" = created ] && continue
		line=$(compose logs --no-log-prefix --tail 3 "$service" 2>/dev/null | tail -n 1)
		say "  $service is $state${health:+, $health}${line:+: ${line:0:300}}"
	done < <(compose ps -a --format '{{.Service}}|{{.State}}|{{.Health}}|{{.ExitCode}}')
}

wait_healthy() {
	local begin=$SECONDS limit=${UP_TIMEOUT:-600} shown= now failed
	compose up -d --no-build --remove-orphans >"$state/up.log" 2>&1 &
	local pid=$!
	trap 'kill "$pid" 2>/dev/null || true; say "up: interrupted; make down stops what was started"; exit 130' INT TERM
	while :; do
		now=$(compose ps --format '{{.Service}} {{.Health}}' 2>/dev/null | awk '$2 == "healthy" {print $1}' | sort)
		comm -13 <(echo "$shown") <(echo "$now") | while read -r service; do [ -z "$service" ] || say "  ok $(printf '%-16s %4d s' "$service" $((SECONDS - begin)))"; done
		shown=$now
		if ! kill -0 "$pid" 2>/dev/null; then
			wait "$pid" || { failed="$(tail -n 1 "$state/up.log")"; break; }
			pid=$$ # it has started all; what is left is health
			started=yes
		fi
		if [ "${started:-}" = yes ] && [ -z "$(compose ps --format '{{.Health}}' | grep -v -e healthy -e '^$' || true)$(compose ps --format '{{.Health}}' | grep unhealthy || true)" ]; then
			trap - INT TERM
			say "healthy after $((SECONDS - begin)) s"
			return 0
		fi
		[ $((SECONDS - begin)) -lt "$limit" ] || { failed="not healthy after $limit s (UP_TIMEOUT)"; break; }
		sleep 1
	done
	trap - INT TERM
	[ "$pid" = "$$" ] || kill "$pid" 2>/dev/null || true
	say "up: $failed"
	why
	say "stopping what was started; volumes stay"
	compose down --remove-orphans >/dev/null 2>&1 || true
	exit 1
}

banner() {
	cat >&2 <<TEXT

  dashboard       http://127.0.0.1:${DASHBOARD_PORT:-8099}   user admin, password: scripts/up.sh password
  control plane   http://127.0.0.1:${CONTROL_PLANE_PORT:-18002}/docs
  inference       http://127.0.0.1:${INFERENCE_PORT:-18001}/docs
  assistant       http://127.0.0.1:${ASSISTANT_PORT:-18004}/docs   (on its sample cluster)
  bus bridge      http://127.0.0.1:${BUS_BRIDGE_PORT:-18003}/health
  evidence        http://127.0.0.1:${EVIDENCE_API_PORT:-8770}
  tracker         http://127.0.0.1:${TRACKER_PORT:-15000}   orchestrator http://127.0.0.1:${ORCHESTRATOR_PORT:-14200}   (any user, the tokens as password)
  secrets         $PLATFORM_SECRETS_DIR, readable by root and by each service

  The first start trains no model. The first thing to try:
    eval "\$(scripts/up.sh env)"
    bin/mlp retrain RuntimeClass --yes --follow && bin/mlp models list      # make build makes bin/mlp
  make logs follows the logs, make down stops everything and keeps the data.
TEXT
}

case "${1:-up}" in
up)
	find_engine start
	find_compose
	if running; then
		say "a stack is there already: bringing it up to date"
	else
		check_ports
	fi
	mkdir -p "$state"
	make_stack_images
	make_secrets
	wait_healthy
	banner
	;;
down)
	shift
	[ "$*" = "" ] || [ "$*" = --volumes ] || die "down takes --volumes or nothing"
	find_engine end
	lock_engine
	find_compose
	compose --profile '*' down --remove-orphans "$@"
	if [ -s "$engine/run/docker.pid" ] && [ "${DOCKER_HOST:-}" = "unix://$engine/run/docker.sock" ] && [ -z "$(docker ps -q)" ]; then
		say "stopping the engine that make up started"
		stop_engine
	fi
	;;
save) # makes images and writes them to standard output, for another engine
	shift
	[ $# -gt 0 ] && [ ! -t 1 ] || die "save takes names of images, and writes an archive to a file or pipe"
	trap '[ "${engine_started:-}" != yes ] || stop_engine' EXIT
	find_engine start --bridge=none --iptables=false # nothing runs on it
	find_compose
	[ "${engine_started:-}" != yes ] || PLATFORM_IMAGES=${PLATFORM_IMAGES:-assemble} # an engine of our own has no network to build with
	make_images base python "$@" >&2
	names=("${@/#/$PLATFORM_IMAGES_PREFIX/}")
	docker save "${names[@]/%/:$PLATFORM_TAG}"
	;;
logs)
	find_engine find
	find_compose
	shift
	compose logs -f --tail 100 "$@"
	;;
env | password)
	find_engine find
	verb=$1
	shift
	stack_tool "$verb" /secrets "$@"
	;;
compose)
	find_engine find
	find_compose
	shift
	compose "$@"
	;;
backup | restore)
	verb=$1
	shift
	[ $# = 1 ] || die "$verb takes the file of the backup"
	. scripts/volumes.sh
	if [ "$verb" = backup ]; then
		find_engine find
	else
		find_engine start
		docker image inspect "$PLATFORM_IMAGES_PREFIX/stack:$PLATFORM_TAG" >/dev/null 2>&1 || { find_compose && make_stack_images; }
	fi
	"${verb}_containers" "$(cd "$invoked_from" && realpath -m -- "$1")"
	;;
docker) # the engine that the stack runs on, wherever it is
	find_engine find
	shift
	docker "$@"
	;;
*) say "usage: scripts/up.sh up|down [--volumes]|backup FILE|restore FILE|save NAME...|logs [SERVICE...]|env|password [viewer]|compose ARGUMENTS...|docker ARGUMENTS..."; exit 2 ;;
esac
