module github.com/mlp-platform/platform/libs/coord

go 1.26.0
