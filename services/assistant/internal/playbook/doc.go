// Package playbook finds out, without a model, what is wrong in a cluster.
//
// It reads a Snapshot of typed objects and matches their fields: state reasons,
// conditions, exit codes, references, labels. Rendered tables are never parsed; free
// text (log lines, messages of a registry) only refines what a field already proved,
// and is quoted as code, for whatever runs in the cluster may have written it. Equal
// snapshots give equal answers, byte for byte.
//
// A log may be forged. What reads like an instruction in one is shown as that and decides
// nothing; a refusal by the API server counts only for the account that the pod acts as,
// and only where the roles and bindings of the snapshot do not allow what was refused.
//
// A Finding names the object to change, not the pod that shows the trouble. A fix is
// given only where all its values stand in a spec, an earlier revision or a label of
// the cluster; otherwise Text says which value a person has to name.
package playbook
