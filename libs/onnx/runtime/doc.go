// Package runtime opens ONNX models and runs them in ONNX Runtime's C library.
//
// Init finds and loads the library once per process. Open reads one model file; the resulting Session
// answers any number of goroutines at once. Small batches, which serving sends all day, go through
// tensors that were bound to the session beforehand, so that a run costs little beyond the library's
// own work.
//
// A model file is outside input: Open checks what the library takes on trust (see check.go) and
// never lets a model name other files.
package runtime
