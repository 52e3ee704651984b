// Package onnx holds what the platform knows of the ONNX format: the protocol buffer types (onnxpb), a
// builder of graphs (graph) and the runtime that serves them (runtime).
package onnx
