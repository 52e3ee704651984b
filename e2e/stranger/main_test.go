//go:build e2e

// Package stranger tests a running platform against other users of the same machine: a second Unix user scans every
// port, file and socket of it, and every route of every service with every kind of credential.
package stranger

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestMain is also the stranger: the test starts this binary again under another user, with a plan.
func TestMain(m *testing.M) {
	if raw := os.Getenv(planVariable); raw != "" {
		var p plan
		if err := json.Unmarshal([]byte(raw), &p); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		if err := json.NewEncoder(os.Stdout).Encode(attemptAll(p)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		os.Exit(0)
	}
	if ports := os.Getenv(holdVariable); ports != "" {
		os.Exit(holdPorts(strings.Fields(ports)))
	}
	os.Exit(m.Run())
}
