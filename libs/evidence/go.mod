module github.com/mlp-platform/platform/libs/evidence

go 1.26.0
