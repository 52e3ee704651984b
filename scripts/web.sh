#!/bin/sh
# Builds the web UI into services/dashboard-bff/internal/webui/site, from where Go embeds it. Quiet when up to date.
# usage: scripts/web.sh           npm ci when the lock changed, then a build when a source changed
#        scripts/web.sh test      also type check, formatting, generated types and the unit tests
#
# Needs Node.js 20.19 or later and npm; packages land in clients/web/node_modules.
# If it is killed at any point, run it again.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
web=$root/clients/web
site=$root/services/dashboard-bff/internal/webui/site
goal=${1:-build}
mkdir -p "$root/.cache"
log=$root/.cache/web.log

say() { printf 'web: %s\n' "$*" >&2; }
case "$goal" in build | test) ;; *) say "unknown goal '$goal'; use build or test"; exit 2 ;; esac
command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 || { say "Node.js and npm are missing; make setup installs them"; exit 1; }
node -e 'const [a,b]=process.versions.node.split(".").map(Number);process.exit(a>20||(a===20&&b>=19)?0:1)' ||
	{ say "Node.js 20.19 or later is needed; this is $(node --version)"; exit 1; }

# One build at a time: two make commands in two shells must not write the same files.
if command -v flock >/dev/null 2>&1; then
	exec 9>>"$root/.cache/web.lock"
	flock 9
fi

# The lock is copied last, so that an interrupted installation is repeated.
installed=$web/node_modules/.installed-lock.json
if ! cmp -s "$web/package-lock.json" "$installed"; then
	say "installing the packages of clients/web (once)"
	if ! (cd "$web" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >"$log" 2>&1; then
		say "could not be installed; the end of $log says why:"
		tail -n 15 "$log" >&2
		exit 1
	fi
	cp "$web/package-lock.json" "$installed"
fi

# All inputs of the build, by content; the stamp is in site and is written last.
digest=$(cd "$web" && find src public tools index.html vite.config.ts tsconfig.json package.json package-lock.json -type f |
	LC_ALL=C sort | xargs -d '\n' sha256sum | sha256sum | cut -d' ' -f1)
if [ "$(cat "$site/.stamp" 2>/dev/null)" != "$digest" ]; then
	say "building the web UI"
	if ! (cd "$web" && npx --no-install vite build) >"$log" 2>&1; then
		say "the build failed; the end of $log says why:"
		tail -n 25 "$log" >&2
		exit 1
	fi
	printf '%s\n' "$digest" >"$site/.stamp"
	say "$(sed -n 's/.*\(initial JavaScript .*\)/\1/p' "$log")"
fi

if [ "$goal" = test ]; then
	cd "$web"
	npm run --silent lint
	npm run --silent test
fi
