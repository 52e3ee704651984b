module github.com/mlp-platform/platform/e2e

go 1.26.0
