#!/bin/sh
# Builds the programs of the container images into a folder. usage: scripts/binaries.sh DIR [VERSION]
# Only programs that load ONNX Runtime need a C library; the others are static.
set -eu
cd "$(dirname -- "$0")/.."
out=$1
flags="-s -w"
for variable in libs/service.Version services/evidence-api.Version; do
	flags="$flags -X github.com/mlp-platform/platform/$variable=${2:-dev}"
done
mkdir -p "$out"
CGO_ENABLED=1 go build -trimpath -ldflags "$flags" -o "$out/" ./services/inference/cmd/inference ./services/inference/cmd/bus-bridge ./services/trainer/cmd/trainer
CGO_ENABLED=0 go build -trimpath -ldflags "$flags" -o "$out/" ./services/control-plane/cmd/control-plane ./services/dashboard-bff/cmd/dashboard-bff \
	./services/assistant/cmd/assistant ./services/evidence-api/cmd/evidence-api ./services/standalone/cmd/stack
(cd libs/embedded && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$out/nats-server" github.com/nats-io/nats-server/v2)
