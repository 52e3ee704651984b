// Package playbook finds out, without a model, what is wrong in a cluster.
//
// It reads a Snapshot of typed objects and matches their fields: state reasons, conditions, exit codes, references,
// labels. Rendered tables are never parsed; free text (log lines, messages of a registry) only refines what a field
// already proved, and is quoted as code, for any workload in the cluster may have written it. Equal snapshots give
// equal answers, byte for byte.
//
// A log may be forged. Text in it that reads like an instruction is labelled as one and has no effect on the findings;
// a refusal by the API server counts only for the pod's own service account, and only where the roles and bindings of
// the snapshot do not grant the refused request.
//
// A Finding names the object to change, not the pod that shows the symptom. A fix is offered only if all its values
// come from a spec, an earlier revision or a label in the cluster; otherwise Text names the value that a person has to
// supply.
package playbook
