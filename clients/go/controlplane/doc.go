// Package controlplane is the typed client of the control plane's HTTP API,
// generated from its OpenAPI document. Add the bearer credential with
// [WithRequestEditorFn].
package controlplane
