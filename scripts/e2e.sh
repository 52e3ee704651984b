#!/bin/bash
# Runs the end-to-end tests: the built binaries over the wire, with their real dependencies.
# usage: [E2E_TAGS=e2e,full] scripts/e2e.sh [go test arguments]
set -eu -o pipefail
cd "$(dirname -- "$0")/.."
root=$PWD
gotestsum=$(scripts/tool.sh gotestsum)
out=$root/.cache/e2e.json
export E2E_PYTHON=$root/.cache/venv/bin/python
args=("$@")
limit=30m
[[ ${E2E_TAGS:-} != *full* ]] || limit=60m
[ ${#args[@]} -gt 0 ] || args=(./...)
rm -f .cache/scenarios-*.txt
cd e2e
# Two packages at a time: a platform that is killed and started again leaves a core idle for most of a test.
"$gotestsum" --format testname --hide-summary=skipped --jsonfile "$out" -- -tags "${E2E_TAGS:-e2e}" -count 1 -p 2 -timeout "$limit" "${args[@]}"
# The assistant's results for its acceptance scenarios, one table an engine.
for table in "$root"/.cache/scenarios-*.txt; do [ ! -e "$table" ] || { echo; cat "$table"; }; done
if skipped=$(grep -E '"Action":"skip".*"Test":' "$out"); then
	echo "skipped tests are failures here:" >&2
	echo "$skipped" >&2
	exit 1
fi
