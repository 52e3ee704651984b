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

// Alert is a fault that lasts: it fires until its source no longer names it.
type Alert struct {
	Source   string // the part that found it, such as "budget"
	Key      string // which of the source's it is; with the source it makes the id
	Severity string
	Title    string // one sentence for people
	Tenant   string // event.PlatformTenant for facts that belong to no tenant
	Labels   map[string]string
}

// ID is "<source>:<key>". Two tenants may have alerts of the same id.
func (a Alert) ID() string { return a.Source + ":" + a.Key }

// Source gives all that fires in one part of the platform now. While it fails,
// its alerts stay as they are. It is asked every 30 s by one replica.
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
