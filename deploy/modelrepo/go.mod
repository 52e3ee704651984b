module github.com/mlp-platform/platform/deploy/modelrepo

go 1.26.0
