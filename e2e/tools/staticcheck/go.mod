module github.com/mlp-platform/platform/e2e/tools/staticcheck

go 1.26.0
