package app

import (
	"strings"
	"testing"
)

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ env, fault string }{
		{"NATS_ADDR=127.0.0.1:14222", ""},
		{"NATS_ADDR=localhost:14222", ""},
		{"TRACKER_ADDR=[::1]:15000", ""},
		{"NATS_ADDR=127.0.0.1:nats", "NATS_ADDR must be host:port"},
		{"NATS_ADDR=127.0.0.2:4222", "NATS_ADDR must be on 127.0.0.1"},
		{"NATS_ADDR=[::1]:4222", "NATS_ADDR must be on 127.0.0.1"},
		{"EVIDENCE_API_ADDR=localhost:18770", ""},
		{"EVIDENCE_API_ADDR=[::1]:8770", "EVIDENCE_API_ADDR must be on 127.0.0.1"},
		{"TRACKER_ADDR=127.0.0.1:0", "TRACKER_ADDR must be host:port"},
		{"TRACKER_ADDR=127.0.0.1:65536", "TRACKER_ADDR must be host:port"},
		{"TRACKER_ADDR=127.0.0.1:-1", "TRACKER_ADDR must be host:port"},
		{"TRACKER_ADDR=127.0.0.1", "TRACKER_ADDR must be host:port"},
		{"INFERENCE_ADDR=0.0.0.0:18001", "INFERENCE_ADDR must be a loopback address"},
		{"CONTROL_PLANE_ADDR=:18002", "CONTROL_PLANE_ADDR must be a loopback address"},
	} {
		_, err := LoadConfig([]string{tt.env})
		switch {
		case tt.fault == "" && err != nil:
			t.Errorf("%s: %v", tt.env, err)
		case tt.fault != "" && (err == nil || !strings.Contains(err.Error(), tt.fault)):
			t.Errorf("%s: %v, want %q", tt.env, err, tt.fault)
		}
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := LoadConfig([]string{"NATS_ADDR=x", "PLATFORM_LOG_TO=nowhere", "PLATFORM_TRAINING_CONCURRENCY=0"})
	for _, want := range []string{"NATS_ADDR", "PLATFORM_LOG_TO", "PLATFORM_TRAINING_CONCURRENCY"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}
