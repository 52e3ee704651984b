// Package engine holds what all playbooks share: the snapshot of a cluster and its index, findings with their order, and
// answers made of them. The checks themselves are in packages workload, network, storage and policy.
package engine
