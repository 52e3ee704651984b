# shellcheck shell=bash
# Backup and restore of the containers' volumes and secrets; scripts/up.sh reads this file and finds the engine.
# Both work on all containers and volumes with the project's name, without compose: the actual state counts.

backup_label=com.docker.compose.project=${COMPOSE_PROJECT_NAME}

# list_running PATTERN: the ids of running containers of the project whose service matches.
list_running() { docker ps --filter "label=$backup_label" --format '{{.ID}} {{.Label "com.docker.compose.service"}}' | { grep -E " ($1)\$" || true; } | cut -d ' ' -f 1; }

# Databases and brokers stop after their clients, and start before them; the elector of the primary outlives it.
elect_pattern='etcd-[0-9]+'
data_pattern='postgres(-[0-9]+)?|redis.*|nats(-[0-9]+)?|object-store'

# stop_containers stops the running containers, in this order, and records them.
stop_containers() {
	stopped_elect=$(list_running "$elect_pattern")
	stopped_data=$(list_running "$data_pattern")
	stopped_rest=$(list_running '.*' | grep -vxF -e "${stopped_elect:-none}" -e "${stopped_data:-none}" || true)
	local group
	for group in "$stopped_rest" "$stopped_data" "$stopped_elect"; do
		# shellcheck disable=SC2086 # ids, a word each
		[ -z "$group" ] || docker stop $group >/dev/null
	done
	[ -z "$(docker ps -q --filter "label=$backup_label")" ] || die "containers of $COMPOSE_PROJECT_NAME were started meanwhile: try again"
}

# start_stopped starts the containers that stop_containers stopped.
start_stopped() {
	local group
	for group in "${stopped_elect:-}" "${stopped_data:-}" "${stopped_rest:-}"; do
		[ -n "$group" ] || continue
		# shellcheck disable=SC2086 # ids, a word each
		docker start $group >/dev/null && await_health $group || say "up: not all of what was stopped is healthy again; scripts/up.sh compose ps -a shows it"
	done
	stopped_elect= stopped_data= stopped_rest=
}

# await_health ID...: waits until those with a health check are healthy.
await_health() {
	local begin=$SECONDS
	while docker inspect -f '{{if .State.Health}}{{.State.Health.Status}}{{end}}' "$@" | grep -qE 'starting|unhealthy'; do
		[ $((SECONDS - begin)) -lt "${UP_TIMEOUT:-600}" ] || return 1
		sleep 1
	done
}

# run_volume_tool CAPABILITIES OPTIONS... -- VERB...: runs the stack tool as root on the volumes mounted below /backup.
run_volume_tool() {
	local capabilities=() options=() c
	for c in $1; do capabilities+=(--cap-add "$c"); done
	shift
	while [ "$1" != -- ]; do options+=("$1"); shift; done
	shift
	docker run --rm -i --network none --read-only --cap-drop ALL "${capabilities[@]}" --security-opt no-new-privileges:true --user 0:0 --tmpfs /backup:mode=0755 \
		"${options[@]}" "$PLATFORM_IMAGES_PREFIX/stack:$PLATFORM_TAG" "$@"
}

# backup_containers FILE: stops the containers, writes the volumes and the secrets, starts the containers again.
backup_containers() {
	local file=$1 next name user options=()
	[ -d "$(dirname -- "$file")" ] || die "the backup cannot be written: there is no folder $(dirname -- "$file")"
	[ ! -d "$file" ] || die "the backup cannot be written: $file is a folder"
	[ -d "$PLATFORM_SECRETS_DIR" ] || die "there are no secrets in $PLATFORM_SECRETS_DIR: name their folder in PLATFORM_SECRETS_DIR"
	for name in $(docker volume ls -q --filter "label=$backup_label"); do
		options+=(-v "$name:/backup/volumes/$(docker volume inspect -f '{{index .Labels "com.docker.compose.volume"}}' "$name"):ro")
	done
	[ ${#options[@]} -gt 0 ] || die "there is nothing to back up: $COMPOSE_PROJECT_NAME has no volume (COMPOSE_PROJECT_NAME)"
	next=$(mktemp -p "$(dirname -- "$file")") # it holds every secret: 0600
	trap 'rm -f "$next"; start_stopped' EXIT
	trap 'exit 130' INT TERM
	say "stopping the services, then the data services"
	stop_containers
	for name in $(docker volume ls -q --filter "label=$backup_label"); do
		user=$(docker ps --filter "volume=$name" --format '{{.Names}}')
		[ -z "$user" ] || die "the container $user uses the volume $name: stop it first"
	done
	run_volume_tool DAC_READ_SEARCH "${options[@]}" -v "$PLATFORM_SECRETS_DIR:/backup/secrets:ro" -- backup /backup >"$next" || die "nothing was backed up"
	sync "$next"
	mv -T -- "$next" "$file"
	say "$file: $(($(stat -c %s "$file") / 1000000)) MB; starting again what ran"
	trap - EXIT
	start_stopped
}

# restore_containers FILE: makes the volumes and the secrets of a backup, whose digests are checked first.
restore_containers() {
	local file=$1 names name parent
	[ -f "$file" ] && [ -r "$file" ] || die "the backup $file cannot be read"
	names=$(docker volume ls -q --filter "label=$backup_label")
	[ -z "$names" ] || die "a backup is restored into an installation without volumes, and $COMPOSE_PROJECT_NAME has $(echo $names): choose another COMPOSE_PROJECT_NAME, or delete them with scripts/up.sh down --volumes"
	[ -z "$(docker ps -aq --filter "label=$backup_label")" ] || die "$COMPOSE_PROJECT_NAME has containers: remove them with scripts/up.sh down"
	[ ! -e "$PLATFORM_SECRETS_DIR" ] || rmdir -- "$PLATFORM_SECRETS_DIR" 2>/dev/null || die "$PLATFORM_SECRETS_DIR holds secrets: move it away, or name another folder in PLATFORM_SECRETS_DIR"
	names=$(run_volume_tool "" -- verify <"$file") || die "nothing was restored from $file"
	for name in $names; do
		! docker volume inspect "${COMPOSE_PROJECT_NAME}_$name" >/dev/null 2>&1 || die "there is a volume ${COMPOSE_PROJECT_NAME}_$name already: nothing was restored"
	done
	parent=$(dirname -- "$PLATFORM_SECRETS_DIR")
	mkdir -p -- "$parent"
	restored_secrets=$(mktemp -d -p "$parent")
	restored_volumes=
	trap undo_restore EXIT
	trap 'exit 130' INT TERM
	local options=(-v "$restored_secrets:/backup/secrets")
	for name in $names; do
		docker volume create --label "$backup_label" --label "com.docker.compose.volume=$name" "${COMPOSE_PROJECT_NAME}_$name" >/dev/null
		restored_volumes="$restored_volumes ${COMPOSE_PROJECT_NAME}_$name"
		options+=(-v "${COMPOSE_PROJECT_NAME}_$name:/backup/volumes/$name")
	done
	run_volume_tool "CHOWN DAC_OVERRIDE FOWNER" "${options[@]}" -- restore /backup <"$file" || die "nothing was restored from $file"
	mv -T -- "$restored_secrets" "$PLATFORM_SECRETS_DIR"
	trap - EXIT
	say "$COMPOSE_PROJECT_NAME: volumes and secrets are there; start it with make up$(case " $names " in *etcd-1*) echo ', with PLATFORM_HA=true' ;; esac)"
}

# undo_restore removes the volumes that a refused restore made. The tool has emptied them.
undo_restore() {
	# shellcheck disable=SC2086 # names, a word each
	[ -z "$restored_volumes" ] || docker volume rm $restored_volumes >/dev/null || say "up: these volumes are left: $restored_volumes"
	[ ! -d "$restored_secrets" ] || rmdir -- "$restored_secrets" || say "up: secrets are left in $restored_secrets"
}
