#!/bin/bash
# Prints the seconds of each package of a test run, longest first. usage: scripts/slowest.sh FILE [ROWS]
set -eu -o pipefail
rows=${2:-20}
echo "seconds  package (the $rows longest)"
jq -r 'select(.Test == null and (.Action == "pass" or .Action == "fail")) | [.Elapsed, .Package] | @tsv' "$1" |
	sort -rn | sed 's,github.com/mlp-platform/platform/,,' | awk -v n="$rows" 'NR <= n { printf "%7.1f  %s\n", $1, $2 }'
