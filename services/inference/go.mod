module github.com/mlp-platform/platform/services/inference

go 1.26.0
