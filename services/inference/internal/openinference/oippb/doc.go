// Package oippb is the gRPC part of the Open Inference Protocol V2 as Go types, generated from
// open_inference_grpc.proto. That file is the text of the descriptor that PyPI's kserve 0.21.0 carries in
// kserve/protocol/grpc/grpc_predict_v2_pb2.py (Apache-2.0, The KServe Authors): the package has no .proto file. The
// protocol only grows, so there is no need to follow each release. To regenerate, with grpcio-tools 1.85.1 from PyPI,
// protoc-gen-go v1.36.12 and protoc-gen-go-grpc v1.6.2 on the path:
//
//	p='Mopen_inference_grpc.proto=github.com/mlp-platform/platform/services/inference/internal/openinference/oippb;oippb'
//	python3 -m grpc_tools.protoc -I. --go_out=. --go_opt=paths=source_relative --go_opt="$p" \
//	  --go-grpc_out=. --go-grpc_opt=paths=source_relative,require_unimplemented_servers=false --go-grpc_opt="$p" open_inference_grpc.proto
//
// Of the result, the server that refuses every method is cut out: all methods are written, and one that the protocol
// gains must not compile until it is.
//
// It is no go:generate line because a build must not need Python.
package oippb
