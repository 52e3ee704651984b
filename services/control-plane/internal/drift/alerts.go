package drift

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/services/control-plane/internal/alert"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// Source is the name of drift among the sources of alerts.
const Source = "drift"

// Watch is the alert source for drift.
type Watch struct {
	Reader *Reader
	// Observe, if set, gets all readings of predictions.
	Observe func([]Reading)
}

// Firing is part of alert.Source.
func (w Watch) Firing(ctx context.Context) ([]alert.Alert, error) {
	readings, err := w.Reader.Read(ctx, Prediction, "")
	if err != nil {
		return nil, err
	}
	if w.Observe != nil {
		w.Observe(readings)
	}
	inputs, err := w.Reader.Read(ctx, Input, "")
	if err != nil && !errors.Is(err, ErrNotServed) {
		return nil, err
	}
	out := []alert.Alert{}
	for _, r := range append(readings, inputs...) {
		if a, fires := r.alert(); fires {
			out = append(out, a)
		}
	}
	return out, nil
}

// alert returns the alert of a reading; too few predictions are no fault.
func (r Reading) alert() (a alert.Alert, fires bool) {
	a = alert.Alert{
		Source: Source, Key: r.Model + ":" + r.Alias, Tenant: event.PlatformTenant, Severity: alert.Warn,
		Labels: map[string]string{"model": r.Model, "alias": r.Alias, "kind": r.Kind, "status": r.Status, "overall": r.Overall},
	}
	by := ""
	if r.DecidedBy != "" {
		a.Labels["measure"] = r.DecidedBy
		by = " (" + r.DecidedBy + ")"
	}
	what := "Predictions"
	if r.Kind == Input {
		a.Key, what = a.Key+":"+Input, "Inputs"
	}
	switch r.Overall {
	case Warning:
		a.Title = fmt.Sprintf("%s of %s under %s begin to drift%s.", what, r.Model, r.Alias, by)
	case Critical:
		a.Severity, a.Title = alert.Critical, fmt.Sprintf("%s of %s under %s have drifted%s.", what, r.Model, r.Alias, by)
	case Corrupt:
		a.Severity, a.Title = alert.Critical, fmt.Sprintf("%s of %s under %s are corrupt.", what, r.Model, r.Alias)
	default:
		return a, false
	}
	return a, true
}

// Subjects lists the subjects of the events that Handle processes.
var Subjects = []string{"platform.*.drift.status_changed"}

// Handle raises the alert of a changed level immediately, in the transaction that records the event as seen.
func Handle(ctx context.Context, tx store.Tx, e outbox.Envelope, now time.Time) error {
	if e.Namespace() != "drift" || e.Name() != "status_changed" {
		return nil
	}
	r, err := decodeStatusChanged(e.Data)
	if err != nil {
		return fmt.Errorf("drift: event %s: %w", e.ID, err)
	}
	a, fires := r.alert()
	return alert.Observe(ctx, tx, a, fires, e.Time, now)
}

// decodeStatusChanged parses the data of drift.status_changed.
func decodeStatusChanged(body []byte) (Reading, error) {
	var data struct {
		Model  string `json:"model"`
		Alias  string `json:"alias"`
		Kind   string `json:"kind"`
		Status string `json:"status"`
		// Absent in events of an inference service that does not send it yet.
		Overall   string   `json:"overall"`
		DecidedBy string   `json:"decided_by"`
		Z         *float64 `json:"z_score"`
	}
	if err := json.Unmarshal(body, &data); err != nil {
		return Reading{}, err
	}
	r := Reading{Model: registry.ID(data.Model), Alias: data.Alias, Kind: data.Kind, Status: data.Status,
		Overall: cmp.Or(data.Overall, data.Status), DecidedBy: measureName(data.DecidedBy), Z: data.Z}
	if !r.sound() || (r.Kind != Prediction && r.Kind != Input) {
		return r, fmt.Errorf("model %q, alias %q, kind %q, status %q, overall %q", data.Model, r.Alias, r.Kind, r.Status, r.Overall)
	}
	return r, nil
}
