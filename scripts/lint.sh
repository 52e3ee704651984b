#!/bin/bash
# gofmt, go vet, staticcheck, deadcode, each module built alone, generated code unchanged, licenses, ruff, no
# marks of a merge. Prints only faults.
set -eu -o pipefail
cd "$(dirname -- "$0")/.."
mapfile -t modules < <(sed -n 's/^\t\.\/\(.*\)$/\1/p' go.work)
bad=0
fail() { echo "lint: $*" >&2; bad=1; }

unformatted=$(git ls-files --cached --others --exclude-standard '*.go' | xargs -r gofmt -l)
[ -z "$unformatted" ] || fail "not gofmt'ed:"$'\n'"$unformatted"

staticcheck=$(scripts/tool.sh staticcheck)
patterns=("${modules[@]/%//...}")
patterns=("${patterns[@]/#/./}")
go vet -tags root "${patterns[@]}" || fail "go vet found faults"
go vet -tags e2e,full,ha,faults,eval,soak ./e2e/... || fail "go vet found faults in e2e"
"$staticcheck" -tags root "${patterns[@]}" || fail "staticcheck found faults"
"$staticcheck" -tags e2e,full,ha,faults,eval,soak ./e2e/... || fail "staticcheck found faults in e2e"

# Functions that no main reaches. The tool leaves out generated code; here the published Go clients are left out, and
# test kits: e2e and packages whose names end in "test", which e2e/boundaries keeps out of binaries. Of the rest these:
#   String, GoString, LogValue, MarshalText   fmt and slog call them by reflection to redact
#   Events, Subscriptions                     what a service publishes and consumes, read for the page of events
#   FindBinaries                              libs/testenv asks whether Postgres is installed before it starts a container
kit='^(clients/go/|e2e/|libs/testenv/|[^:]*test/[^/:]*:)'
kept='unreachable func: ([A-Za-z]+\.(String|GoString|LogValue|MarshalText)|Events|Subscriptions|FindBinaries)$'
dead=$("$(scripts/tool.sh deadcode)" -tags e2e,full,ha,faults,eval,soak "${patterns[@]}") || fail "deadcode could not run"
dead=$(grep -vE "$kit|$kept" <<<"$dead") || true
[ -z "$dead" ] || fail "functions that no binary calls:"$'\n'"$dead"

for m in "${modules[@]}"; do
	(cd "$m" && GOWORK=off go build ./... && GOWORK=off go mod tidy -diff >/dev/null) || fail "$m does not stand alone (GOWORK=off build, go mod tidy)"
done

# One version of each dependency in the whole workspace.
skew=$(for m in "${modules[@]}"; do sed -n 's/^\t\(.* v[0-9][^ ]*\).*$/\1/p' "$m/go.mod"; done | grep -v mlp-platform | sort -u | awk '{print $1}' | uniq -d)
[ -z "$skew" ] || fail "modules require different versions of:"$'\n'"$skew"

# Generated code must be what the generators make of its sources.
hash_gen() { git ls-files --cached --others --exclude-standard '*.gen.go' '*.pb.go' 'clients/go/*/openapi.json' | sort | xargs -r sha256sum | sha256sum; }
gen=$(hash_gen)
for m in "${modules[@]}"; do
	if grep -rqs --include='*.go' '^//go:generate' "$m"; then (cd "$m" && go generate ./...) || fail "go generate failed in $m"; fi
done
[ "$gen" = "$(hash_gen)" ] || fail "generated code is out of date: run make generate and commit"

scripts/licenses.sh check || fail "third-party licenses: see above"

sh scripts/venv.sh lint
.cache/venv-lint/bin/ruff check --quiet clients/python || fail "ruff found faults in clients/python"
.cache/venv-lint/bin/ruff check --quiet --config clients/python/pyproject.toml examples || fail "ruff found faults in examples"
.cache/venv-lint/bin/ruff format --quiet --check --config clients/python/pyproject.toml examples || fail "examples is not formatted: run ruff format"
.cache/venv-lint/bin/ruff format --quiet --check clients/python || fail "clients/python is not formatted: run ruff format"

merging=$(git grep -nE '^(<<<<<<<|>>>>>>>) ' || true)
[ -z "$merging" ] || fail "marks of an unfinished merge:"$'\n'"$merging"

for f in scripts/*.sh .ci/run; do bash -n "$f" || fail "$f does not parse"; done
[ $bad = 0 ] && echo "lint: ok (${#modules[@]} modules)"
exit $bad
