#!/usr/bin/dash
# Makes the cluster on the first start, then runs the scripts of /docker-entrypoint-initdb.d, as the official image does.
set -eu
PGDATA=${PGDATA:-/var/lib/postgresql/data}
[ "${1:-}" = postgres ] || exec "$@"
have=
[ ! -e "$PGDATA/PG_VERSION" ] || read -r have <"$PGDATA/PG_VERSION"
want=$(postgres --version | { read -r _ _ v _; echo "${v%%.*}"; })
if [ -n "$have" ] && [ "$have" != "$want" ]; then
	echo "the volume holds a cluster of Postgres $have, and this is Postgres $want: use an image of that version, or dump and restore" >&2
	exit 1
fi
if [ -z "$have" ]; then
	# One statement a line. A first start that was killed half-way is made again.
	if [ -d "$PGDATA.new" ]; then rm -r "$PGDATA.new"; fi
	initdb -D "$PGDATA.new" -U postgres --pwfile="$POSTGRES_PASSWORD_FILE" --auth-local=trust ${POSTGRES_INITDB_ARGS:-} --locale=C.UTF-8 -E UTF8 >/dev/null
	echo "host all all all scram-sha-256" >>"$PGDATA.new/pg_hba.conf"
	for script in /docker-entrypoint-initdb.d/*.sql; do
		[ ! -e "$script" ] || postgres --single -D "$PGDATA.new" postgres <"$script" >/dev/null
	done
	mv "$PGDATA.new" "$PGDATA"
fi
exec "$@" -D "$PGDATA" -c listen_addresses='*'
