module github.com/mlp-platform/platform/libs/onnx

go 1.26.0
