// Package outboxbench measures the outbox beside its peers. It is a separate module, so that users of the outbox do not
// download the peers' dependencies.
package outboxbench
