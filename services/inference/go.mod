module github.com/mlp-platform/platform/services/inference

go 1.26.0

require (
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3
	github.com/goccy/go-yaml v1.19.2
	github.com/mlp-platform/platform/libs/onnx v0.0.0
	github.com/mlp-platform/platform/libs/problem v0.0.0
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/labstack/echo/v4 v4.16.0 // indirect
	github.com/labstack/gommon v0.5.0 // indirect
	github.com/mattn/go-colorable v0.1.15 // indirect
	github.com/mattn/go-isatty v0.0.22 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	github.com/valyala/fasttemplate v1.2.2 // indirect
	github.com/yalue/onnxruntime_go v1.27.0 // indirect
	golang.org/x/crypto v0.53.0 // indirect
	golang.org/x/net v0.56.0 // indirect
	golang.org/x/sys v0.46.0 // indirect
	golang.org/x/text v0.40.0 // indirect
)

replace github.com/mlp-platform/platform/libs/problem => ../../libs/problem

replace github.com/mlp-platform/platform/libs/onnx => ../../libs/onnx
