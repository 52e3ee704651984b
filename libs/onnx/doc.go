package onnx
