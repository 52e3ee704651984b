module github.com/mlp-platform/platform/libs/loopback

go 1.26.0
