module github.com/mlp-platform/platform/libs/postgres

go 1.26.0
