module github.com/mlp-platform/platform/services/trainer

go 1.26.0
