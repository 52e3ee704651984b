#!/bin/bash
# Measures the assistant's diagnoses over the scenarios of e2e/eval in a real control plane.
# Progress goes to standard error; the tables, or with --output json the whole report, to standard output.
# With --recorded it asks about the recorded clusters of a folder instead, each with a truth.json or truth.yaml.
# usage: scripts/eval.sh [--recorded DIR] [--output table|json] [--scenario ID,CLASS,GROUP…] [--wording symptom,typo…] [--limit 40m] [--engine playbooks|llm --url URL --model NAME]
set -eu -o pipefail
cd "$(dirname -- "$0")/.."
root=$PWD
output=table
recorded=
args=()
while [ $# -gt 0 ]; do
	case "$1" in
	--output) output=${2:?} ;;
	--recorded) recorded=${2:?} ;;
	--scenario | --wording | --limit | --engine | --url | --model) args+=("-${1#--}" "${2:?}") ;;
	*) sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2 ;;
	esac
	shift 2
done
case "$output" in table | json) ;; *) echo "eval.sh: --output is table or json" >&2; exit 2 ;; esac
mkdir -p bin
go build -trimpath -o bin/ ./services/assistant/cmd/assistant
if [ -n "$recorded" ]; then
	exec bin/assistant evaluate --recorded "$recorded" --output "$output"
fi
rm -f .cache/evaluation.json .cache/evaluation.txt
status=0
(cd e2e && go test -tags e2e,eval -count 1 -timeout 4h ./eval -run '^TestEvaluation$' -args -out "$root/.cache/evaluation.json" -table "$root/.cache/evaluation.txt" ${args[@]+"${args[@]}"}) >&2 || status=$?
case "$output" in
json) cat .cache/evaluation.json ;;
table) cat .cache/evaluation.txt ;;
esac
exit "$status"
