#!/bin/bash
# gofmt, go vet, staticcheck, deadcode, each module built alone, generated code unchanged, licenses, ruff, Vale, no
# merge conflict marks. Prints only faults and, at the end, the seconds of each check. Changes nothing in the tree, so
# that tests can run beside it.
# usage: scripts/lint.sh        modules whose content passed before on this machine are not built alone again
#        scripts/lint.sh all    every module
set -eu -o pipefail
cd "$(dirname -- "$0")/.."
root=$PWD
goal=${1:-changed}
case "$goal" in changed | all) ;; *) echo "lint: unknown goal '$goal'; use changed or all" >&2; exit 2 ;; esac
mapfile -t modules < <(sed -n 's/^\t\.\/\(.*\)$/\1/p' go.work)
patterns=("${modules[@]/%//...}")
patterns=("${patterns[@]/#/./}")
e2e_tags=e2e,full,ha,faults,eval,soak
bad=0
fail() { echo "lint: $*" >&2; bad=1; }

# run_check runs a check and measures its time.
times=
run_check() {
	local start=$SECONDS
	"$@"
	times="$times${times:+, }${1#check_} $((SECONDS - start)) s"
}

check_format() {
	local unformatted
	unformatted=$(git ls-files --cached --others --exclude-standard '*.go' | xargs -r gofmt -l)
	[ -z "$unformatted" ] || fail "not gofmt'ed:"$'\n'"$unformatted"
}

check_vet() {
	go vet -tags root "${patterns[@]}" || fail "go vet found faults"
	go vet -tags "$e2e_tags" ./e2e/... || fail "go vet found faults in e2e"
}

check_staticcheck() {
	local staticcheck
	staticcheck=$(scripts/tool.sh staticcheck)
	"$staticcheck" -tags root "${patterns[@]}" || fail "staticcheck found faults"
	"$staticcheck" -tags "$e2e_tags" ./e2e/... || fail "staticcheck found faults in e2e"
}

# Functions that no main reaches. The tool leaves out generated code; here the published Go clients are left out, and
# test kits: e2e and packages whose names end in "test", which e2e/boundaries keeps out of binaries. Also allowed:
#   String, GoString, LogValue, MarshalText   fmt and slog call them by reflection to redact
#   Events, Subscriptions                     what a service publishes and consumes, read for the page of events
#   FindBinaries                              libs/testenv checks whether Postgres is installed before it starts a container
check_deadcode() {
	local dead kit='^(clients/go/|e2e/|libs/testenv/|[^:]*test/[^/:]*:)'
	local kept='unreachable func: ([A-Za-z]+\.(String|GoString|LogValue|MarshalText)|Events|Subscriptions|FindBinaries)$'
	dead=$("$(scripts/tool.sh deadcode)" -tags "$e2e_tags" "${patterns[@]}") || fail "deadcode could not run"
	dead=$(grep -vE "$kit|$kept" <<<"$dead") || true
	[ -z "$dead" ] || fail "functions that no binary calls:"$'\n'"$dead"
}

check_prose() {
	local text
	text=$(scripts/prose.sh 2>&1) || fail "the English of the project:"$'\n'"$text"
}

# A module's digest covers its files, those of the workspace modules it replaces, and the tools that check them.
digest_module() { # module
	local dirs
	mapfile -t dirs < <(echo "$1"; sed -n "s|^.*=> \(\.\.*/.*\)$|$1/\1|p" "$1/go.mod" | xargs -r realpath -m --relative-to=.)
	{
		go env GOVERSION
		sha256sum scripts/lint.sh scripts/sqlc.sh scripts/oapi-codegen.sh
		git ls-files --cached --others --exclude-standard -- "${dirs[@]}" | LC_ALL=C sort -u | xargs -d '\n' sha256sum 2>/dev/null
	} | sha256sum | cut -c1-32
}

passed=${XDG_CACHE_HOME:-$HOME/.cache}/mlp-platform/lint
# has_passed reports whether this content passed this check before on this machine.
has_passed() { [ "$goal" = changed ] && [ -e "$passed/$1" ]; }
record_pass() { mkdir -p "$passed" && : >"$passed/$1"; }

check_modules_alone() {
	local m key
	for m in "${modules[@]}"; do
		key=alone-$(digest_module "$m")
		has_passed "$key" && continue
		# go list -export compiles every package and links none.
		if (cd "$m" && GOWORK=off go list -export ./... && GOWORK=off go mod tidy -diff) >/dev/null; then
			record_pass "$key"
		else
			fail "$m does not stand alone (GOWORK=off build, go mod tidy)"
		fi
	done
}

check_versions() {
	local skew
	skew=$(for m in "${modules[@]}"; do sed -n 's/^\t\(.* v[0-9][^ ]*\).*$/\1/p' "$m/go.mod"; done | grep -v mlp-platform | sort -u | awk '{print $1}' | uniq -d)
	[ -z "$skew" ] || fail "modules require different versions of:"$'\n'"$skew"
}

# Generated code must equal the generators' output for its sources. They work in a copy of the tree.
check_generated() {
	local m copy key f stale=
	local -A keys=()
	for m in "${modules[@]}"; do
		grep -rqs --include='*.go' '^//go:generate' "$m" || continue
		key=generated-$(digest_module "$m")
		has_passed "$key" || keys[$m]=$key
	done
	[ ${#keys[@]} -gt 0 ] || return 0
	copy=.cache/generate.$$
	rm -rf "$copy"
	mkdir -p "$copy"
	git ls-files --cached --others --exclude-standard -z | xargs -0 ls -d 2>/dev/null | tar -c -T - | tar -x -C "$copy"
	ln -s "$root/.cache" "$copy/.cache"
	for m in "${!keys[@]}"; do
		(cd "$copy/$m" && go generate ./...) || { fail "go generate failed in $m"; keys[$m]=; }
	done
	while read -r f; do
		cmp -s "$f" "$copy/$f" || stale="$stale"$'\n'"$f"
	done < <(cd "$copy" && find . \( -name '*.gen.go' -o -name '*.pb.go' -o -path './clients/go/*/openapi.json' \) -printf '%P\n')
	rm -rf "$copy"
	[ -z "$stale" ] || { fail "generated code is out of date, run make generate and commit:$stale"; return 0; }
	for m in "${!keys[@]}"; do [ -z "${keys[$m]}" ] || record_pass "${keys[$m]}"; done
}

check_licenses() { scripts/licenses.sh check || fail "third-party licenses: see above"; }

check_python() {
	sh scripts/venv.sh lint
	local ruff=.cache/venv-lint/bin/ruff
	"$ruff" check --quiet clients/python || fail "ruff found faults in clients/python"
	"$ruff" check --quiet --config clients/python/pyproject.toml examples || fail "ruff found faults in examples"
	"$ruff" format --quiet --check --config clients/python/pyproject.toml examples || fail "examples is not formatted: run ruff format"
	"$ruff" format --quiet --check clients/python || fail "clients/python is not formatted: run ruff format"
}

check_texts() {
	local merging f
	merging=$(git grep -nE '^(<<<<<<<|>>>>>>>) ' || true)
	[ -z "$merging" ] || fail "marks of an unfinished merge:"$'\n'"$merging"
	for f in scripts/*.sh .ci/run; do bash -n "$f" || fail "$f does not parse"; done
}

for check in format vet staticcheck deadcode modules_alone versions generated licenses python texts prose; do
	run_check "check_$check"
done
echo "lint: $times"
[ $bad = 0 ] && echo "lint: ok (${#modules[@]} modules)"
exit $bad
