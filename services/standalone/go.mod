module github.com/mlp-platform/platform/services/standalone

go 1.26.0
