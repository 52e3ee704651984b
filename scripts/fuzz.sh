#!/bin/bash
# Runs each fuzz target of the workspace for FUZZTIME (default 20s). Prints one line a target.
set -eu -o pipefail
cd "$(dirname -- "$0")/.."
fuzztime=${FUZZTIME:-20s}
git ls-files --cached --others --exclude-standard '*_test.go' | xargs grep -l '^func Fuzz' | sort | while read -r file; do
	dir=$(dirname "$file")
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		echo "== ./$dir $target ($fuzztime)"
		go test "./$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" -fuzzminimizetime 1x
	done
done
