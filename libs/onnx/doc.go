// Package onnx holds the platform's code for the ONNX format: the protocol buffer types (onnxpb), a builder of graphs
// (graph) and the runtime that serves them (runtime).
package onnx
