#!/bin/bash
# The whole life of a model with mlp and git alone: from nothing to Production, into drift, retrained, and back.
# usage: scripts/loop.sh --context OPERATOR --approver CONTEXT --repo DIR [--model NAME] [--mlp PROGRAM]
# OPERATOR asks for everything; the approver's context holds another person's token, since nobody approves what they asked
# for. Both name the same platform: the one process, or containers (docs/compose.md, MODELREPO). DIR is the working copy
# of the model repository that the platform trains from.
set -eu -o pipefail
context= approver= repo= model=LoopModel mlp=mlp
while [ $# -gt 0 ]; do
	case "$1" in
	--context) context=$2 ;;
	--approver) approver=$2 ;;
	--repo) repo=$2 ;;
	--model) model=$2 ;;
	--mlp) mlp=$2 ;;
	*) echo "loop: unknown option $1" >&2; exit 2 ;;
	esac
	shift 2
done
[ -n "$context" ] && [ -n "$approver" ] && [ -n "$repo" ] || { echo "usage: scripts/loop.sh --context OPERATOR --approver CONTEXT --repo DIR [--model NAME] [--mlp PROGRAM]" >&2; exit 2; }
shown=$(printf %s "$model" | tr '[:lower:]' '[:upper:]')

step() { printf '\n== %s\n' "$*"; }
die() { echo "loop: $*" >&2; exit 1; }
operator() { "$mlp" --context "$context" --yes "$@"; }
second() { "$mlp" --context "$approver" --yes "$@"; }

# production prints the version in Production, nothing if there is none.
production() { operator -o csv models list --columns name,production | sed -n "s/^$shown,//p"; }
# jobs N NODES predicts for N jobs that ask for about that many nodes.
jobs() {
	local i
	for i in $(seq "$1"); do
		operator --quiet predict "$model" --features "{\"nodes\": $(($2 + i % 7)), \"req_hours\": $((1 + i % 12)), \"app\": \"cfd\"}" >/dev/null
	done
}
commit() { git -C "$repo" add -A && git -C "$repo" -c user.name=loop -c user.email=loop@localhost commit -qm "$1"; }
# promote moves Production to the newest version; the operator asks, the approver decides.
promote() {
	operator pipeline promote "$model" --if-r2-gte 0.5 --reason "$1"
	second approvals show "$model"
	second approvals approve "$model" --follow --reason "agreed: $1"
}

step "a model from nothing"
operator scaffold "$model" --repo "$repo"
operator pipeline validate --repo "$repo"
commit "Add $model"
operator modelrepo sync
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
step "retrained and promoted"
sed -i.before 's/n_estimators: 60/n_estimators: 80/' "$repo"/models/*/"$model"/model.yaml && rm "$repo"/models/*/"$model"/model.yaml.before
commit "More trees for $model"
operator modelrepo sync
operator retrain "$model" --follow
promote "after drift"
next=$(production)
[ "$next" != "$first" ] || die "Production is still version $first"
step "and back"
operator models rollback "$model" --reason "slow on large jobs"
[ "$(production)" = "$first" ] || die "Production is version $(production), not $first"
operator models history "$model" --alias Production
operator audit --model "$model" --limit 10
printf '\n%s: version %s, then %s, then %s again\n' "$shown" "$first" "$next" "$first"
