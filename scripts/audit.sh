#!/bin/bash
# Scans the platform's dependencies for known vulnerabilities: Go modules and the standard library (only reachable
# code), npm packages, and the Python packages of the tests. Each scan needs an external service; if it cannot be
# reached, the scan prints one line, and the exit code is 2. It is 1 for findings.
set -u -o pipefail
cd "$(dirname -- "$0")/.."
found=0 missed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# scan name unreachable command...: runs a scan; output that matches unreachable means a network failure.
scan() {
	local name=$1 unreachable=$2 code=0
	shift 2
	"$@" >"$log" 2>&1 || code=$?
	if ! grep -qE 'Found [1-9]' "$log" && grep -qE "$unreachable" "$log"; then
		echo "audit: $name: not scanned: $(grep -m1 -E "$unreachable" "$log" | cut -c1-200)" >&2
		missed=1
	elif [ $code = 0 ]; then
		echo "audit: $name: nothing known"
	else
		cat "$log"
		echo "audit: $name: see above" >&2
		found=1
	fi
}

govulncheck=$(scripts/tool.sh govulncheck) || exit 2
mains=$(sed -n '/^build:/,/^$/p' Makefile | grep -oE '\./[a-z-]+/[a-z-]+/cmd/[a-z-]+' | sort -u)
for main in $mains; do
	scan "Go, $main" 'fetching vulnerabilities|no such host|connection refused|i/o timeout' "$govulncheck" -C "${main%%/cmd/*}" "./cmd/${main##*/}"
	[ $missed = 0 ] || break # the others would not reach it either
done
scan "npm" 'audit endpoint returned an error|ENOTFOUND|ECONNREFUSED|EAI_AGAIN' npm --prefix clients/web audit --omit=dev

audit=.cache/venv-audit
[ -x $audit/bin/pip-audit ] || { python3 -m venv $audit && $audit/bin/python -m pip install --quiet --disable-pip-version-check --no-input pip-audit==2.10.1; } || missed=1
for list in e2e/requirements*.txt; do
	[ -x $audit/bin/pip-audit ] || break
	scan "Python, $list" 'could not be audited|ConnectionError|Max retries exceeded|ServiceError' $audit/bin/pip-audit --disable-pip --require-hashes --requirement "$list"
done
[ $found = 0 ] || exit 1
[ $missed = 0 ] || exit 2
