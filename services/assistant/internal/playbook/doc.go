// Package playbook finds out, without a model, what is wrong in a cluster.
//
// It reads a Snapshot of typed objects and matches their fields: state reasons,
// conditions, exit codes, references, labels. Rendered tables are never parsed; free
// text (log lines, messages of a registry) only refines what a field already proved,
// and is quoted as code, for whatever runs in the cluster may have written it. Equal
// snapshots give equal answers, byte for byte.
//
// A Finding names the object to change, not the pod that shows the trouble. A fix is
// given only where all its values stand in a spec, an earlier revision or a label of
// the cluster; otherwise Text says which value a person has to name.
package playbook
