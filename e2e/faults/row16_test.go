//go:build e2e

package faults

import (
	"testing"
	"time"
)

// Acceptance row 16: NATS is unavailable for 60 s and the relays are killed with kill -9, like all others: no poison,
// nothing lost, and the inbox absorbs duplicates.
func TestRow16BrokerAway(t *testing.T) {
	underKills(t, plan{kills: 2, each: 60, brokerAway: time.Minute})
}
