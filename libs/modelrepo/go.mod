module github.com/mlp-platform/platform/libs/modelrepo

go 1.26.0
