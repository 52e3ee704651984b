#!/bin/sh
# Makes .cache/venv with what e2e/requirements.txt pins. Quiet when it is up to date.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
venv=$root/.cache/venv
want=$root/e2e/requirements.txt

# The list is copied into the venv last, so that a venv cut off half-way is made again.
cmp -s "$want" "$venv/requirements.txt" && "$venv/bin/python" -c '' 2>/dev/null && exit 0

echo "venv: installing e2e/requirements.txt into .cache/venv (once, some minutes)" >&2
mkdir -p "$root/.cache"
log=$root/.cache/venv.log
rm -rf "$venv"
# Made in its final place: the scripts in a venv hold its absolute path.
if ! { python3 -m venv "$venv" && "$venv/bin/python" -m pip install --disable-pip-version-check --no-input -r "$want"; } >"$log" 2>&1; then
	echo "venv: could not be made; the end of $log says why:" >&2
	tail -n 15 "$log" >&2
	exit 1
fi
cp "$want" "$venv/requirements.txt"
