// Package trainer runs the training flow: extract the rows a model declares, submit the fit to a scheduler, wait,
// fetch and check the model, evaluate it on rows it never saw, log the run and register the version in the tracker,
// and let the control plane apply the ladder.
//
// It is a library: mlp, the orchestrator's runner and standalone call Train; cmd/trainer is a small main over it.
package trainer
