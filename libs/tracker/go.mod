module github.com/mlp-platform/platform/libs/tracker

go 1.26.0
