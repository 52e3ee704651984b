module github.com/mlp-platform/platform/libs/problem

go 1.26.0
