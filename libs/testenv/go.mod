module github.com/mlp-platform/platform/libs/testenv

go 1.26.0
