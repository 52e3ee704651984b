module github.com/mlp-platform/platform/libs/scriptedmodel

go 1.26.0
