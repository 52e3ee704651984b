#!/bin/bash
# Makes two contexts of mlp's configuration: NAME, with the operator's token, and NAME-approver, with another person's
# token, since people cannot approve their own requests.
# usage: eval "$(bin/platform env)" or eval "$(scripts/up.sh env)", then scripts/contexts.sh NAME CREDENTIALS [MLP]
# Run it again after each start of the one process: the tokens of its tracker and orchestrator change with it.
# CREDENTIALS is the platform's credentials.json: .data/credentials.json, or .data/compose/secrets/credentials.json.
set -eu -o pipefail
[ $# -ge 2 ] && [ $# -le 3 ] && [ -r "$2" ] || { echo "usage: scripts/contexts.sh NAME CREDENTIALS [MLP]; CREDENTIALS must be readable" >&2; exit 2; }
name=$1 credentials=$2 mlp=${3:-mlp}
secret() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" "$credentials"; }
# Secrets are passed on standard input: arguments are visible to every user of the machine.
for context in "$name" "$name-approver"; do
	set_key() { [ -z "$2" ] || "$mlp" --quiet --context "$context" config set "$1" "$2"; }
	set_secret() { [ -z "$2" ] || printf %s "$2" | "$mlp" --quiet --context "$context" config set "$1"; }
	set_key control_plane "$CONTROL_PLANE_URL"
	set_key serving "$SERVING_URL"
	set_key tracker "$TRACKING_URI"
	set_key orchestrator "$ORCHESTRATOR_API_URL"
	set_key dashboard "${DASHBOARD_URL:-}"
	set_key assistant "${ASSISTANT_URL:-}"
	set_key bus "${BUS_BRIDGE_URL:-}"
	set_secret inference_token "${SERVING_TOKEN:-}"
	set_secret tracker_token "${MLFLOW_TRACKING_TOKEN:-}"
	set_secret orchestrator_token "${PREFECT_API_KEY:-}"
	set_secret assistant_key "${ASSISTANT_KEY:-}"
done
printf %s "$(secret operator_token)" | "$mlp" --quiet --context "$name" config set control_plane_token
printf %s "$(secret control_plane_token)" | "$mlp" --quiet --context "$name-approver" config set control_plane_token
