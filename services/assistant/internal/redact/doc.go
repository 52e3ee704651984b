// Package redact removes secret values from the cluster's data before anything else sees it.
//
// [Transport] wraps the one HTTP client: no value of a Secret gets past it. [Object], [Value] and [Text] are for data
// about to be shown, stored or given to an engine: they recognise secrets in other places by their form and by the
// names next to them. All of them are idempotent.
package redact
