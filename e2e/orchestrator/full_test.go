//go:build e2e && full

package orchestrator

// full runs every case on both servers.
const full = true
