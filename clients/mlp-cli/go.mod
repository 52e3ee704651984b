module github.com/mlp-platform/platform/clients/mlp-cli

go 1.26.0
