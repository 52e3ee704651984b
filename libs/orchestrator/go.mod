module github.com/mlp-platform/platform/libs/orchestrator

go 1.26.0

require github.com/google/uuid v1.6.0
