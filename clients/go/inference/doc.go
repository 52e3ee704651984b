// Package inference is the typed client of the inference service's HTTP API,
// generated from its OpenAPI document. Add the bearer credential with
// [WithRequestEditorFn].
package inference
