module github.com/mlp-platform/platform/libs/sse

go 1.26.0
