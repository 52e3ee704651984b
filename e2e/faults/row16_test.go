//go:build e2e

package faults

import (
	"testing"
	"time"
)

// Acceptance row 16: NATS away for 60 s and kill -9 of the relays, among all others: no poison, nothing
// lost, and the inbox absorbs what comes twice.
func TestRow16BrokerAway(t *testing.T) {
	underKills(t, plan{kills: 2, each: 60, brokerAway: time.Minute})
}
