#!/bin/bash
# The whole life of a model with mlp and git alone: from nothing to Production, into drift, retrained, and back.
# usage: scripts/loop.sh --context OPERATOR [--approver CONTEXT] [--repo DIR] [--model NAME] [--mlp PROGRAM]
# OPERATOR makes every request; the approver's context (OPERATOR-approver) holds another person's token, since people
# cannot approve their own requests. scripts/contexts.sh makes both. They name one platform: the one process, or
# containers (docs/compose.md). DIR is the working copy of the model repository that the platform trains from (PLATFORM_MODELREPO).
set -eu -o pipefail
usage="usage: scripts/loop.sh --context OPERATOR [--approver CONTEXT] [--repo DIR] [--model NAME] [--mlp PROGRAM]"
context= approver= repo=${PLATFORM_MODELREPO:-} model=LoopModel mlp=mlp
while [ $# -gt 0 ]; do
	case "$1" in
	--context | --approver | --repo | --model | --mlp) [ $# -gt 1 ] || { echo "loop: $1 needs a value; $usage" >&2; exit 2; } ;;
	esac
	case "$1" in
	--context) context=$2 ;;
	--approver) approver=$2 ;;
	--repo) repo=$2 ;;
	--model) model=$2 ;;
	--mlp) mlp=$2 ;;
	*) echo "loop: unknown option $1; $usage" >&2; exit 2 ;;
	esac
	shift 2
done
approver=${approver:-$context-approver}
# The environment takes precedence over a context: the token that `platform env` exports would make both the same person.
unset CONTROL_PLANE_URL SERVING_URL TRACKING_URI ORCHESTRATOR_API_URL DASHBOARD_URL BUS_BRIDGE_URL ASSISTANT_URL
unset CONTROL_PLANE_TOKEN DASHBOARD_TOKEN MLFLOW_TRACKING_TOKEN PREFECT_API_KEY SERVING_TOKEN ASSISTANT_KEY
[ -n "$context" ] && [ -n "$repo" ] || { echo "$usage" >&2; exit 2; }
[ -d "$repo/.git" ] || { echo "loop: $repo is not the working copy of a model repository" >&2; exit 1; }
shown=$(printf %s "$model" | tr '[:lower:]' '[:upper:]')

step() { printf '\n== %s\n' "$*"; }
die() { echo "loop: $*" >&2; exit 1; }
operator() { "$mlp" --context "$context" --yes "$@"; }
second() { "$mlp" --context "$approver" --yes "$@"; }

# production prints the version in Production, nothing if there is none.
production() { operator -o csv models list --columns name,production | sed -n "s/^$shown,//p"; }
# jobs N NODES predicts for N jobs that request about that many nodes.
jobs() {
	local i
	for i in $(seq "$1"); do
		operator --quiet predict "$model" --features "{\"nodes\": $(($2 + i % 7)), \"req_hours\": $((1 + i % 12)), \"app\": \"cfd\"}" >/dev/null
	done
}
commit() { git -C "$repo" add -A && git -C "$repo" -c user.name=loop -c user.email=loop@localhost commit -qm "$1"; }
# sync_models makes the platform read the new commit. Other replicas, which may get the next request, follow within a
# second.
sync_models() { operator modelrepo sync && sleep 1.5; }
# promote moves Production to the newest version: the operator requests it and waits, the approver decides meanwhile. The
# training's own request is superseded, so the approver waits until the operator's request is pending.
promote() {
	local asked i
	operator pipeline promote "$model" --if-r2-gte 0.5 --reason "$1" --follow >"$talk" 2>&1 &
	asked=$!
	for i in $(seq 240); do
		grep -q 'is pending' "$talk" && break
		kill -0 "$asked" 2>/dev/null || break
		sleep 0.25
	done
	second approvals show "$model" || { cat "$talk" >&2; die "nothing waits for the approver"; }
	second approvals approve "$model" --reason "agreed: $1"
	wait "$asked" || { cat "$talk" >&2; die "$model was not promoted"; }
	cat "$talk"
}
# train_on_drift allows drift to start training; if that setting needs a second person, the approver approves it.
train_on_drift() {
	local change
	change=$(operator --json drift auto-retrain enable "$model" --gate direct --kind any | sed -n 's/.*"change_id": *"\([^"]*\)".*/\1/p')
	[ -z "$change" ] || second guarded-changes approve "$change" --reason "agreed: train $model when it drifts"
}

talk=$(mktemp)
trap 'rm -f "$talk"' EXIT
step "a model from nothing"
operator scaffold "$model" --repo "$repo"
operator pipeline validate --repo "$repo"
commit "Add $model"
sync_models
step "trained, judged, promoted by two people, served"
operator retrain "$model" --follow
promote "first version"
first=$(production)
[ -n "$first" ] || die "$model is not in Production"
operator serve reload --model "$model"
operator pipeline validate-model "$model" --alias Production
step "traffic as expected becomes the baseline"
jobs 40 8
operator drift baseline "$model"
operator drift reset "$model"
step "other traffic drifts"
jobs 40 57
operator drift status "$model"
operator --json drift status "$model" | grep -qE '"overall": "(WARNING|CRITICAL)"' || die "the drift of $model was not seen"
step "drift starts training; promoted"
sed -i.before 's/n_estimators: 60/n_estimators: 80/' "$repo"/models/*/"$model"/model.yaml && rm "$repo"/models/*/"$model"/model.yaml.before
commit "More trees for $model"
sync_models
train_on_drift
operator drift trigger --model "$model" --follow
# The control plane also checks on its own schedule (AUTO_RETRAIN_SECONDS), and may have started the run first.
run=$(operator -o csv runs list --model "$model" --columns run --limit 1 2>/dev/null | sed 1d)
operator runs show "$run" --follow
operator drift auto-retrain disable "$model"
promote "after drift"
next=$(production)
[ "$next" != "$first" ] || die "Production is still version $first"
step "and back"
operator models rollback "$model" --reason "slow on large jobs"
[ "$(production)" = "$first" ] || die "Production is version $(production), not $first"
operator models history "$model" --alias Production
operator audit --model "$model" --limit 10
printf '\n%s: version %s, then %s, then %s again\n' "$shown" "$first" "$next" "$first"
