module github.com/mlp-platform/platform/libs/orchestrator

go 1.26.0
