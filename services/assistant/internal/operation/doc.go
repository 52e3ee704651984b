// Package operation defines the closed set of things the assistant can do in a cluster.
//
// An [Operation] is typed data: never a shell line, never a raw API call. A model's tool call ([Decode]), a person's
// kubectl line (package kubectl) and a playbook's fix all become one, and only an operation that passes
// [Operation.Validate] is processed. Names are as written; resolving them against a live cluster gives an [Expanded]
// operation, which is judged by rules, approved by people and run by the executor.
package operation
