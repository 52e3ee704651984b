module github.com/mlp-platform/platform/clients/svc-cli

go 1.26.0
