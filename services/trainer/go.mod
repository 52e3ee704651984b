module github.com/mlp-platform/platform/services/trainer

go 1.26.0

require github.com/mlp-platform/platform/libs/modelrepo v0.0.0

replace github.com/mlp-platform/platform/libs/modelrepo => ../../libs/modelrepo
