package alert

import (
	"context"

	"github.com/mlp-platform/platform/services/control-plane/internal/event"
)

// The severities, most severe first.
const (
	Critical = "critical"
	Error    = "error"
	Warn     = "warn"
)

// Alert is a lasting fault: it fires until its source no longer reports it.
type Alert struct {
	Source   string // the part that found it, such as "budget"
	Key      string // identifies the alert within its source; ID combines both
	Severity string
	Title    string // one sentence for people
	Tenant   string // event.PlatformTenant for facts that belong to no tenant
	Labels   map[string]string
}

// ID is "<source>:<key>". Two tenants may have alerts with the same id.
func (a Alert) ID() string { return a.Source + ":" + a.Key }

// Source returns all alerts that fire now in one part of the platform. If it fails, its alerts stay unchanged. One
// replica calls it every 30 s.
type Source interface {
	Firing(ctx context.Context) ([]Alert, error)
}

// Payload is the data of alert.firing and alert.resolved.
func (a Alert) Payload() event.Alert {
	labels := a.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	return event.Alert{ID: a.ID(), Source: a.Source, Severity: a.Severity, Title: a.Title, Labels: labels}
}
