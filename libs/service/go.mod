module github.com/mlp-platform/platform/libs/service

go 1.26.0
