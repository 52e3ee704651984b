// Package tool runs the operations that read: lists, objects, logs, events, usage,
// revisions, rights, schemas and differences of the cluster, and queries of the metrics
// and log stores.
//
// A result is text for a person or a model: redacted, within a number of characters, and with a line about anything
// left out. Namespaces that the policy hides do not exist for any caller. Text that workloads may have written is
// passed on as untrusted.
package tool
