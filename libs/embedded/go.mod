module github.com/mlp-platform/platform/libs/embedded

go 1.26.0
