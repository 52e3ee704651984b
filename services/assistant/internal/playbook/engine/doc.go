// Package engine contains what all playbooks share: the snapshot of a cluster and its index, findings with their order,
// and answers built from them. The checks themselves are in packages workload, network, storage and policy.
package engine
