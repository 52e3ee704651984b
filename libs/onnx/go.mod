module github.com/mlp-platform/platform/libs/onnx

go 1.26.0

require (
	github.com/yalue/onnxruntime_go v1.27.0
	google.golang.org/protobuf v1.36.12
)

replace github.com/mlp-platform/platform/libs => ..
