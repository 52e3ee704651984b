#!/bin/bash
# Runs each fuzz target of the workspace for FUZZTIME (default 20s), or those whose file or name matches the regular
# expression FUZZ. Prints one line a target. Each process may have FUZZ_MEMORY_MB (default 1536) of writable memory, so
# that an input that takes more ends as a recorded crash. It is RLIMIT_DATA: Go reserves address space that it never
# uses, so a limit of that (ulimit -v) would be useless.
set -eu -o pipefail
cd "$(dirname -- "$0")/.."
fuzztime=${FUZZTIME:-20s}
limit=$((${FUZZ_MEMORY_MB:-1536} << 20))
git ls-files --cached --others --exclude-standard '*_test.go' | xargs grep -l '^func Fuzz' | sort | while read -r file; do
	dir=$(dirname "$file")
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		[[ "$file $target" =~ ${FUZZ:-} ]] || continue
		echo "== ./$dir $target ($fuzztime)"
		go test "./$dir" -exec "prlimit --data=$limit" -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" -fuzzminimizetime 1x ${FUZZ_PARALLEL:+-parallel "$FUZZ_PARALLEL"}
	done
done
