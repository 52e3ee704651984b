// Package outboxbench measures the outbox beside its peers. It is a module of its own, so that nobody who needs the outbox
// has to know what those need.
package outboxbench
