//go:build e2e && !full

package orchestrator

// full is off: make e2e runs the worker's main case on each server, make e2e-full all of them.
const full = false
