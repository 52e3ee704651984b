// Package outboxbench measures the outbox beside its peers. It is a module of its own, so that whoever
// needs the outbox does not download the peers' dependencies.
package outboxbench
