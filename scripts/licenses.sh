#!/bin/bash
# The licenses of the components of the binaries and the dashboard's pages.
# usage: scripts/licenses.sh         writes THIRD_PARTY_LICENSES.md; needs clients/web/node_modules (make build)
#        scripts/licenses.sh check   checks that it lists the components of this tree, each under an allowed license
set -eu -o pipefail
cd "$(dirname -- "$0")/.."
list=THIRD_PARTY_LICENSES.md

# Licenses that may be linked into a program under Apache-2.0 and passed on with it. MPL-2.0 applies to single files,
# which stay unchanged.
allowed='|0BSD|Apache-2.0|BSD-2-Clause|BSD-3-Clause|BlueOak-1.0.0|CC0-1.0|ISC|MIT|MPL-2.0|PostgreSQL|SQLite|Unlicense|Zlib|public domain|'

# The programs that make build builds.
mains=$(sed -n '/^build:/,/^$/p' Makefile | grep -oE '\./[a-z-]+/[a-z-]+/cmd/[a-z-]+' | sort -u)

# Third-party files in this tree: name, version and the folder with the license, between tabs.
redoc=libs/service/internal/reference/redoc
gitleaks=services/assistant/internal/redact/gitleaks
vendored() {
	printf 'Redoc\t%s\t%s\n' "$(sed -n '1s/^redoc \([^ ]*\) .*/\1/p' $redoc/VERSION.txt)" $redoc
	printf 'rules of gitleaks\t%s\t%s\n' "$(sed -n 's/^\/\/ gitleaksFile is the rule file of gitleaks \([^,]*\),.*/\1/p' $gitleaks.go)" $gitleaks
	printf 'ONNX Runtime\t%s\te2e/tools/licenses/onnxruntime\n' "$(sed -n 's/^ort_version=//p' scripts/setup.sh)"
	printf 'PostgreSQL\t%s\te2e/tools/licenses/postgresql\n' "$(sed -n 's/^postgres_version=//p' scripts/setup.sh)"
}

# components prints name, version and the folder with the license, between tabs.
components() {
	# shellcheck disable=SC2086
	go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}}	{{.Version}}	{{.Dir}}{{end}}{{end}}' $mains
	jq -r '.packages | to_entries[] | select(.key != "" and .value.dev != true)
		| "npm:\(.key | sub("^node_modules/"; ""))\t\(.value.version)\tclients/web/\(.key)"' clients/web/package-lock.json
	vendored
	printf 'Go standard library\t%s\t%s\n' "$(sed -n 's/^go_version=//p' scripts/setup.sh)" "$(go env GOROOT)"
}

case "${1:-write}" in
write)
	(cd e2e/tools/licenses && GOWORK=off go build -o ../../../.cache/bin/licenses .)
	components | sort -u | .cache/bin/licenses >$list.tmp
	mv $list.tmp $list
	;;
check)
	bad=0 IFS=$'\n'
	# Only the first table: the texts have tables too.
	rows=$(sed -n '/^## /q; s/^| \(.*\) | \(.*\) | \(.*\) |$/\1\t\2\t\3/p' $list | tail -n +2)
	if ! diff <(components | cut -f1,2 | LC_ALL=C sort -u) <(cut -f1,2 <<<"$rows" | LC_ALL=C sort -u) >&2; then
		echo "licenses: $list is out of date (< this tree, > the list): run scripts/licenses.sh and commit" >&2
		bad=1
	fi
	# A folder with its own license is third-party.
	if ! diff <(git ls-files '*LICENSE*' '*LICENCE*' '*COPYING*' | grep / | xargs -rn1 dirname | LC_ALL=C sort -u) <(vendored | cut -f3 | LC_ALL=C sort -u) >&2; then
		echo "licenses: vendored() in scripts/licenses.sh is out of date (< folders with a license, > those it names)" >&2
		bad=1
	fi
	while IFS=$'\t' read -r name _ license; do
		for l in ${license// and /$'\n'}; do
			case $allowed in *"|$l|"*) ;; *) echo "licenses: $name is under $l, which scripts/licenses.sh does not allow" >&2; bad=1 ;; esac
		done
	done <<<"$rows"
	exit $bad
	;;
*) echo "usage: scripts/licenses.sh [check]" >&2; exit 2 ;;
esac
