module github.com/mlp-platform/platform/clients/go

go 1.26.0
