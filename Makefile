# Every target installs or builds what it needs; `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
export PATH := $(CURDIR)/.cache/go/bin:$(CURDIR)/.cache/node/bin:$(PATH)
export CGO_ENABLED := 1
# Stamping asks git, which refuses in a clone that belongs to another user; the linker sets the version.
# Without paths of this checkout in them, packages are compiled once for binaries, tests, lint and other checkouts.
export GOFLAGS := -buildvcs=false -trimpath $(filter-out -buildvcs=% -trimpath,$(GOFLAGS))
# The library that setup fetched; tests and binaries find it here before any system copy.
export ORT_LIB ?= $(CURDIR)/.cache/onnxruntime/libonnxruntime.so.1
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/mlp-platform/platform/libs/service.Version=$(VERSION) \
	-X github.com/mlp-platform/platform/services/evidence-api.Version=$(VERSION) \
	-X github.com/mlp-platform/platform/clients/svc-cli/internal/app.Version=$(VERSION)
MODULES := $(shell sed -n 's/^\t\.\/\(.*\)$$/\1/p' go.work)

.PHONY: help
help: ## list the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup:
	@scripts/setup.sh run

.PHONY: build
build: setup ## build every binary into bin/
	@scripts/web.sh
	@scripts/pages.sh
	@mkdir -p bin
	@echo "building bin/: platform mlp svc assistant control-plane dashboard-bff evidence-api inference bus-bridge trainer stack"
	@go build -tags urfave_cli_no_docs -ldflags '$(LDFLAGS)' -o bin/ ./services/standalone/cmd/platform ./clients/mlp-cli/cmd/mlp \
		./clients/svc-cli/cmd/svc ./services/assistant/cmd/assistant ./services/control-plane/cmd/control-plane ./services/dashboard-bff/cmd/dashboard-bff ./services/evidence-api/cmd/evidence-api ./services/inference/cmd/inference ./services/inference/cmd/bus-bridge ./services/trainer/cmd/trainer ./services/standalone/cmd/stack
	@cp -uf .cache/onnxruntime/libonnxruntime.so.1 bin/

.PHONY: release
release: ## write the archives of a version, its notes, digests and lists of modules to dist/: make release VERSION=1.2.3
	@scripts/setup.sh release
	@scripts/web.sh
	@scripts/pages.sh
	@scripts/release.sh '$(if $(filter command,$(origin VERSION)),$(VERSION))'

.PHONY: run
run: build ## start the whole platform here (first start trains the samples); Ctrl-C or make stop ends it
	@exec bin/platform

.PHONY: stop
stop: ## stop the platform that make run started
	@bin/platform stop

.PHONY: up
up: ## the platform as containers: finds or starts Docker, builds or assembles images, waits until healthy
	@scripts/up.sh up

.PHONY: down
down: ## stop the containers that make up started; data stays (scripts/up.sh down --volumes deletes it)
	@scripts/up.sh down

.PHONY: logs
logs: ## follow the containers' logs
	@scripts/up.sh logs

.PHONY: test
test: ## every unit and integration test, with the race detector, against real Postgres, NATS and Redis
	@scripts/setup.sh test
	@scripts/web.sh test
	@scripts/test.sh

.PHONY: lint
lint: ## gofmt, vet, staticcheck, deadcode, generated code unchanged, licenses, every module alone, English
	@scripts/setup.sh test
	@scripts/lint.sh

.PHONY: audit
audit: ## known vulnerabilities of all dependencies; needs the network and is not part of CI
	@scripts/setup.sh test
	@scripts/audit.sh

.PHONY: generate
generate: ## regenerate typed SQL, API types and clients
	@scripts/setup.sh run
	@for m in $(MODULES); do (cd $$m && go generate ./...); done

.PHONY: dashboards
dashboards: ## make deploy/grafana/dashboards of deploy/grafana/panels.yaml
	@scripts/setup.sh e2e
	@cd e2e && go test -tags e2e -count 1 -run TestDashboardsAreUpToDate ./rules -update

.PHONY: bench
bench: build ## the figures of docs/performance.md, each as a ratio to a floor of the same run
	@scripts/bench.sh

.PHONY: figures
figures: ## train the models of the real job log and print README's table of figures
	@scripts/setup.sh run
	@go run ./services/trainer/cmd/trainer figures

.PHONY: eval
eval: ## the assistant's redaction over its corpus, and its diagnoses over scenarios in a real control plane; EVAL='--output json …', see docs/evaluation.md
	@scripts/setup.sh e2e
	@go test ./services/assistant/internal/redact -count 1 -run '^(TestCorpus|TestHeldOut)$$' -v | grep -v '^=== ' $(if $(findstring json,$(EVAL)),>&2)
	@scripts/eval.sh $(EVAL)

.PHONY: e2e
e2e: ## the platform over the wire, with the real neighbours
	@scripts/setup.sh e2e
	@$(MAKE) --no-print-directory build
	@scripts/e2e.sh

.PHONY: e2e-full
e2e-full: ## make e2e, with every case of the worker, a Slurm of one node, an S3 server, the Helm chart and the assistant on a real node and the containers with replicas
	@scripts/setup.sh e2e-full
	@$(MAKE) --no-print-directory build
	@E2E_TAGS=e2e,full scripts/e2e.sh

.PHONY: e2e-ha
e2e-ha: ## containers killed under load, a rolling restart, data services lost and replaced; docs/scaling.md has the figures
	@scripts/setup.sh e2e-full
	@$(MAKE) --no-print-directory build
	@failed=0; \
	E2E_TAGS=e2e,full,ha scripts/e2e.sh -run 'TestKilledContainersLoseNothing|TestRollingRestartFailsNoRequest' ./stack || failed=1; \
	PLATFORM_HA=true E2E_TAGS=e2e,full,ha scripts/e2e.sh -run TestLostDataServicesAreReplaced ./stack || failed=1; \
	exit $$failed

.PHONY: e2e-llm
e2e-llm: ## a real small language model behind the assistant; its server is built once, in tens of minutes; not part of CI
	@scripts/setup.sh test
	@scripts/llama.sh
	@$(MAKE) --no-print-directory build
	@cd e2e && go test -tags e2e,e2ellm -count 1 -v -timeout 60m -run TestSmallModel ./assistant/

.PHONY: faults
faults: ## kill -9 of every process under load, FAULTS_KILLS times each; then a reckoning
	@scripts/setup.sh test
	@$(MAKE) --no-print-directory build
	@scripts/faults.sh

.PHONY: soak
soak: ## mixed load on the running containers, or with SOAK_TARGET=platform on the one process, for SOAK_MINUTES (20); fails if memory or goroutines keep growing
	@scripts/setup.sh run
	@scripts/soak.sh

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (default 20s), each process within FUZZ_MEMORY_MB (default 1536)
	@scripts/setup.sh run
	@scripts/fuzz.sh

.PHONY: check
check: lint test ## what CI runs before make e2e

.PHONY: check-all
check-all: ## make check, with every module built alone whatever passed before
	@scripts/setup.sh test
	@scripts/lint.sh all
	@$(MAKE) --no-print-directory test
