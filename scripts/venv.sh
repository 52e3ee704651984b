#!/bin/sh
# Makes a virtual environment with the pinned packages of a list; quiet when it is up to date. Lists name every package
# with the digests of its files, so nothing is resolved here; scripts/requirements.sh writes them.
# usage: scripts/venv.sh           .cache/venv from e2e/requirements.txt
#        scripts/venv.sh <name>    .cache/venv-<name> from e2e/requirements-<name>.txt
# Programs with conflicting requirements have an environment each.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
suffix=${1:+-$1}
venv=$root/.cache/venv$suffix
want=$root/e2e/requirements$suffix.txt

# The list is copied into the venv last, so that an interrupted installation is repeated.
cmp -s "$want" "$venv/requirements.txt" && "$venv/bin/python" -c '' 2>/dev/null && exit 0

echo "venv: installing e2e/requirements$suffix.txt into .cache/venv$suffix (once, some minutes)" >&2
mkdir -p "$root/.cache"
log=$venv.log
rm -rf "$venv"
# One dependency of the assistant requires a newer Python than Debian's; only the list pins what is installed.
[ "$suffix" != -assistant ] || export PIP_IGNORE_REQUIRES_PYTHON=1
# Made in its final place: the scripts in a venv hold its absolute path.
if ! { python3 -m venv "$venv" && "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --require-hashes --no-deps -r "$want"; } >"$log" 2>&1; then
	echo "venv: could not be made; the end of $log says why:" >&2
	tail -n 15 "$log" >&2
	exit 1
fi
cp "$want" "$venv/requirements.txt"
