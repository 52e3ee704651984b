// Package ort is the binding of ONNX Runtime, which is in C. In a program built without C code, such as the mlp of a
// release for other systems, it has the same types, and nothing can be initialized: see Available.
package ort
