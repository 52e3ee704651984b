// Package redact takes secret values out of what the cluster says before anything else sees it.
//
// [Transport] stands in the one HTTP client: no value of a Secret gets past it. [Object], [Value] and [Text] are for
// what is about to be shown, stored or given to an engine: they recognise secrets in other places by their form and by
// the names beside them. All of them may be applied twice: the second time changes nothing.
package redact
