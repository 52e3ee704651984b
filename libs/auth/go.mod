module github.com/mlp-platform/platform/libs/auth

go 1.26.0
