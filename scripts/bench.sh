#!/bin/bash
# Measures each figure beside a floor or a peer of the same run and prints the ratios. Never fails on a figure.
set -eu -o pipefail
cd "$(dirname -- "$0")/.."
# The peers: other model servers, and nginx with nchan. An unavailable one is left out, and its benchmark reports that.
for venv in "" mlserver bentoml; do sh scripts/venv.sh $venv || echo "left out: $venv" >&2; done
scripts/nchan.sh >/dev/null || echo "left out: nchan" >&2
echo "== inference: POST /predict beside a bare net/http JSON echo, 64 clients; V2 batches of 64 rows beside the graph alone; /predict with a shadow of every request; the bus beside a bare NATS responder; 1,000 models of which 100 may be loaded; /predict beside MLflow, MLServer and BentoML"
go test ./services/inference/bench -run "^$" -bench . -benchtime 1x -timeout 20m
echo "== outbox: insert → relay → JetStream → consumer, beside the same messages through JetStream alone, and through River"
go test ./libs/outboxbench -run '^$' -bench . -benchtime 1x
echo "== evidence: reads at 16 connections, beside a bare server that hashes the same body; its transport alone; pages of a million events"
go test ./services/evidence-api/bench -run '^$' -bench . -benchtime 1x
go test ./libs/loopback/httpd -run '^$' -bench . -benchtime 1x
go test ./libs/evidence/store -run '^$' -bench EventPages -benchtime 100x
echo "== mlp: its help, the list of models beside the API alone, the completion of a name, beside a program that does nothing"
go test ./clients/mlp-cli -run "^$" -bench Start -benchtime 50x
echo "== svc --help"
go test ./clients/svc-cli -run '^$' -bench Help -benchtime 20x
echo "== control plane: a page of 50,000 pending approvals, and a scrape with them"
go test ./services/control-plane -run "^$" -bench "ApprovalsPage|MetricsCrowded" -benchtime 3x
echo "== control plane: the audit ledger verified and appended to, 100,000 entries"
go test ./services/control-plane/internal/audit -run "^$" -bench . -benchtime 1x
echo "== assistant: request to handshake and first status; what it adds to a model's token; 5,000 pods read and diagnosed"
go test ./services/assistant -run '^$' -bench Handshake -benchtime 100x
go test ./services/assistant/internal/model -run '^$' -bench Token -benchtime 5x
go test ./services/assistant/internal/snapshot -run '^$' -bench Question -benchtime 5x
echo "== dashboard: events to 1,000 clients, beside a bare loop, go-sse and nchan; a composed view beside its slowest source; a proxy hop beside a bare httputil.ReverseProxy"
go test ./services/dashboard-bff/internal/stream -run '^$' -bench FanOut -benchtime 1x
go test ./services/dashboard-bff/internal/mlops -run '^$' -bench . -benchtime 100x
go test ./services/dashboard-bff/internal/proxy -run '^$' -bench Hop -benchtime 3000x
go test ./services/dashboard-bff/internal/proxy -run '^$' -bench RewriteHTML -benchtime 1000x
echo "== inference: the drift status of 500 models, while all and while none get predictions"
go test ./services/inference/internal/monitor -run '^$' -bench DriftStatus -benchtime 15x
echo "== trainer: gradient-boosted trees on 1,000,000 rows of 20 columns beside scikit-learn's HistGradientBoosting, on all processors and on one"
export BENCH_PYTHON=$PWD/.cache/venv/bin/python
go test ./services/trainer/internal/learn -run '^$' -bench ScikitLearn -benchtime 1x -timeout 60m
GOMAXPROCS=1 OMP_NUM_THREADS=1 go test ./services/trainer/internal/learn -run '^$' -bench ScikitLearn -benchtime 1x -timeout 60m
echo "== dashboard in Chromium: first screen with nothing cached; a registry of 5,000 models scrolled and filtered"
scripts/browser.sh
go test ./services/dashboard-bff/bench -run '^$' -bench Browser -benchtime 1x
