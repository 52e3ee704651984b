#!/bin/sh
# Fetches the packages of the browser tests into .cache/browser; quiet when they are up to date.
# usage: scripts/browser.sh      packages of e2e/browser/package-lock.json, no browser: that is Debian's
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
dir=$root/.cache/browser
lock=$root/e2e/browser/package-lock.json

# The lock is copied last, so that an interrupted installation is repeated.
cmp -s "$lock" "$dir/installed.json" && exit 0

echo "browser: installing the packages of e2e/browser into .cache/browser (once)" >&2
rm -rf "$dir"
mkdir -p "$dir"
cp "$root/e2e/browser/package.json" "$lock" "$dir/"
if ! npm ci --prefix "$dir" --ignore-scripts --no-audit --no-fund --loglevel=error >"$dir.log" 2>&1; then
	echo "browser: could not be installed; the end of $dir.log says why:" >&2
	tail -n 15 "$dir.log" >&2
	exit 1
fi
cp "$lock" "$dir/installed.json"
