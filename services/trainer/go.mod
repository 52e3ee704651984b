module github.com/mlp-platform/platform/services/trainer

go 1.26.0

require github.com/mlp-platform/platform/libs/modelrepo v0.0.0

require gonum.org/v1/gonum v0.17.0 // indirect

replace github.com/mlp-platform/platform/libs/modelrepo => ../../libs/modelrepo
