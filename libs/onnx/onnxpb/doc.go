// Package onnxpb is the ONNX model format as Go types, generated from onnx-ml.proto, which is the copy
// that PyPI's onnx 1.23.2 carries (Apache-2.0). The format only grows, so there is no need to follow each
// release; to regenerate, with grpcio-tools from PyPI and protoc-gen-go v1.36.12 on the path:
//
//	python3 -m grpc_tools.protoc -I. --go_out=. --go_opt=paths=source_relative \
//	  '--go_opt=Monnx-ml.proto=github.com/mlp-platform/platform/libs/onnx/onnxpb;onnxpb' onnx-ml.proto
//
// It is no go:generate line because a build must not need Python.
package onnxpb
