//go:build faults

package faults

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// Every process is killed ten times during 500 requested retrains and 500 approvals.
func TestEveryProcessIsKilled(t *testing.T) {
	underKills(t, plan{kills: intSetting(t, "FAULTS_KILLS", 10), each: intSetting(t, "FAULTS_COMMANDS", 500), brokerAway: time.Minute})
}

func intSetting(t *testing.T, name string, fallback int) int {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return fallback
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q; it must be a number of 1 or more", name, v)
	}
	return n
}
