module github.com/mlp-platform/platform/services/assistant

go 1.26.0
