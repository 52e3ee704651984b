// Package runtime opens ONNX models and runs them in ONNX Runtime's C library.
//
// Init finds and loads the library once per process. Open reads one model file; the resulting Session
// answers any number of goroutines at once. Small batches, which serving sends all day, go through
// tensors that were bound to the session beforehand, so that a run costs little beyond the library's
// own work.
//
// A model file is outside input. Before the library sees it, Open limits the cost of decoding it (encoding.go),
// compares its operators with a closed list (operators.go), limits its graphs and constants (bounds.go), and checks
// what the library takes on trust (check.go, trees.go). It refuses a graph whose cost depends on the values of a
// request (sizes.go), so that one run's cost predicts that of later ones. A run ends at Options.RunLimit (guard.go).
package runtime
