module github.com/mlp-platform/platform/services/control-plane

go 1.26.0
