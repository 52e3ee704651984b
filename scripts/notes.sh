#!/bin/sh
# Prints the release notes of a version: its section of the changelog, or "Unreleased" when it has none.
# usage: scripts/notes.sh VERSION [CHANGELOG.md]
# Exit codes: 0 printed, 1 no such section or an empty one, 2 wrong arguments.
set -eu
version=${1:-} file=${2:-$(dirname -- "$0")/../CHANGELOG.md}

die() { printf 'notes: %s\n' "$2" >&2; exit "$1"; }
[ $# -ge 1 ] && [ $# -le 2 ] && [ -n "$version" ] || die 2 "usage: scripts/notes.sh VERSION [CHANGELOG.md]"
[ -r "$file" ] || die 2 "$file cannot be read; name the changelog as the second argument"

# section NAME: the lines below the heading "## NAME", "## [NAME]" or "## NAME - date", up to the next such heading.
section() {
	awk -v name="$1" '
		/^## / { title = $2; gsub(/^\[|\]$/, "", title); inside = title == name; next }
		inside && (NF || begun) { begun = 1; if (NF) { printf "%s%s\n", blank, $0; blank = "" } else blank = blank "\n" }
	' "$file"
}

text=$(section "$version")
if [ -z "$text" ]; then
	grep -qE "^## \[?$(printf '%s' "$version" | sed 's/[.+]/\\&/g')\]?( |\$)" "$file" && die 1 "$file has a section $version without text; write what users notice in it"
	text=$(section Unreleased)
	[ -n "$text" ] || die 1 "$file has neither a section $version nor text below Unreleased; write what users notice in one of them"
	printf 'notes: %s has no section %s; the notes are those of Unreleased\n' "$file" "$version" >&2
fi
printf '%s\n' "$text"
