#!/usr/bin/dash
# Patroni runs this once, on the first primary, with the address of its database.
set -eu
exec psql -q -v ON_ERROR_STOP=1 -f /run/secrets/init.sql "$1"
