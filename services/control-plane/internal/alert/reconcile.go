package alert

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

const (
	// sourceTimeout limits one reading of one source.
	sourceTimeout = 20 * time.Second
	// keepEnded is how long a resolved alert is kept for comparison with late facts.
	keepEnded = 24 * time.Hour
	// eventAge is the maximum age of a fact whose source was never read: a new consumer gets a week of history, which
	// is not news.
	eventAge = 5 * time.Minute
	// actor is the actor of alert events.
	actor = "system:alerts"
)

// Reconciler keeps the table in sync with the sources.
type Reconciler struct {
	Store   *store.Store
	Sources map[string]Source // by name
	Every   time.Duration
	Log     *slog.Logger
	Now     func() time.Time

	nudge chan struct{}
	mu    sync.Mutex // guards unread
	// unread holds the sources whose last reading failed; a failure is logged once.
	unread map[string]bool
}

// NewReconciler returns a Reconciler that reads each source at that interval.
func NewReconciler(s *store.Store, sources map[string]Source, every time.Duration, log *slog.Logger) *Reconciler {
	return &Reconciler{Store: s, Sources: sources, Every: every, Log: log, Now: time.Now, nudge: make(chan struct{}, 1), unread: map[string]bool{}}
}

// Nudge makes Run reconcile now. It does not wait.
func (r *Reconciler) Nudge() {
	select {
	case r.nudge <- struct{}{}:
	default:
	}
}

// Run reconciles until ctx ends. One replica runs it, under a lease.
func (r *Reconciler) Run(ctx context.Context) error {
	tick := time.NewTicker(r.Every)
	defer tick.Stop()
	for {
		r.Reconcile(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-r.nudge:
		}
	}
}

// Reconcile reads all sources in parallel. The alerts of a source that cannot be read
// stay unchanged.
func (r *Reconciler) Reconcile(ctx context.Context) {
	var wg sync.WaitGroup
	for _, name := range slices.Sorted(maps.Keys(r.Sources)) {
		wg.Go(func() {
			err := r.source(ctx, name)
			if ctx.Err() != nil {
				return
			}
			r.mu.Lock()
			was := r.unread[name]
			r.unread[name] = err != nil
			r.mu.Unlock()
			switch {
			case err != nil && !was:
				r.Log.WarnContext(ctx, "alert source not readable: its alerts stay unchanged", slog.String("source", name), slog.Any("err", err))
			case err == nil && was:
				r.Log.InfoContext(ctx, "alert source readable again", slog.String("source", name))
			}
		})
	}
	wg.Wait()
	if err := r.Store.ForgetAlerts(ctx, r.Now().Add(-keepEnded)); err != nil && ctx.Err() == nil {
		r.Log.WarnContext(ctx, "old alerts not forgotten", slog.Any("err", err))
	}
}

func (r *Reconciler) source(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	at := r.Now() // before the read, so that the data is at least as new
	firing, err := r.Sources[name].Firing(ctx)
	if err != nil {
		return err
	}
	seen := map[id]Alert{}
	for _, a := range firing {
		if a.Source != name || a.Key == "" || a.Tenant == "" || severityRank(a.Severity) < 0 {
			return fmt.Errorf("alert: source %s gives %+v", name, a)
		}
		seen[id{a.Tenant, a.Key}] = a
	}
	if seen, err = r.ofOwners(ctx, seen); err != nil {
		return err
	}
	return r.Store.InTx(ctx, func(tx store.Tx) error { return reconcileSource(ctx, tx, name, seen, at) })
}

// ofOwners returns the alerts of models as alerts of the tenants that own the models.
func (r *Reconciler) ofOwners(ctx context.Context, seen map[id]Alert) (map[id]Alert, error) {
	out := make(map[id]Alert, len(seen))
	for _, a := range seen {
		if model := a.Labels["model"]; model != "" && a.Tenant == event.PlatformTenant {
			owner, err := r.Store.OwnerOf(ctx, model)
			if err != nil {
				return nil, err
			}
			a.Tenant = owner
		}
		out[id{a.Tenant, a.Key}] = a
	}
	return out, nil
}

// id identifies an alert within its source.
type id struct{ tenant, key string }

// reconcileSource updates the table of one source to the alerts seen at that time.
func reconcileSource(ctx context.Context, tx store.Tx, source string, seen map[id]Alert, at time.Time) error {
	if err := lockSource(ctx, tx, source); err != nil {
		return err
	}
	rows, err := tx.AlertsOf(ctx, source)
	if err != nil {
		return err
	}
	had := map[id]store.Alert{}
	for _, row := range rows {
		had[id{row.Tenant, row.Key}] = row
		if _, ok := seen[id{row.Tenant, row.Key}]; ok || !row.Firing {
			continue
		}
		if err := upsertAlert(ctx, tx, &row, alertFromRow(row), false, at); err != nil {
			return err
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(seen), func(a, b id) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.tenant, b.tenant)) }) {
		var old *store.Alert
		if row, ok := had[k]; ok {
			old = &row
		}
		if err := upsertAlert(ctx, tx, old, seen[k], true, at); err != nil {
			return err
		}
	}
	return tx.SetAlertsReadAt(ctx, store.SetAlertsReadAtParams{Source: source, ReadAt: at})
}

// Observe records that one alert fires, or no longer fires, since the time at. It handles events between two reads of
// the source.
func Observe(ctx context.Context, tx store.Tx, a Alert, firing bool, at, now time.Time) error {
	if err := lockSource(ctx, tx, a.Source); err != nil {
		return err
	}
	read, err := tx.AlertsReadAt(ctx, a.Source)
	switch {
	case store.None(err):
		read = now.Add(-eventAge)
	case err != nil:
		return err
	}
	if at.Before(read) {
		return nil // the next read covers it
	}
	row, err := tx.GetAlert(ctx, store.GetAlertParams{Source: a.Source, Key: a.Key, Tenant: a.Tenant})
	switch {
	case err == nil:
		return upsertAlert(ctx, tx, &row, a, firing, at)
	case !store.None(err):
		return err
	case !firing:
		return nil
	}
	return upsertAlert(ctx, tx, nil, a, true, at)
}

// lockSource serialises reads and events of one source.
func lockSource(ctx context.Context, tx store.Tx, source string) error {
	return tx.LockKeys(ctx, []string{"alerts:" + source})
}

// upsertAlert writes one alert and, if its published fields change, its event.
func upsertAlert(ctx context.Context, tx store.Tx, old *store.Alert, a Alert, firing bool, at time.Time) error {
	if old != nil && old.ObservedAt.After(at) {
		return nil
	}
	if !firing && old != nil {
		a = alertFromRow(*old) // the alert that ends is the stored one
	}
	labels, err := json.Marshal(a.Payload().Labels)
	if err != nil {
		return fmt.Errorf("alert: encode labels: %w", err)
	}
	row := store.PutAlertParams{
		Tenant: a.Tenant, Source: a.Source, Key: a.Key, Severity: a.Severity, Title: a.Title, Labels: labels,
		Firing: firing, Since: at, ObservedAt: at,
	}
	fired := old != nil && old.Firing
	if fired {
		row.Since = old.Since
	}
	if err := tx.PutAlert(ctx, row); err != nil {
		return err
	}
	name := "firing"
	switch {
	case !firing && !fired, firing && fired && old.Severity == a.Severity:
		return nil
	case !firing:
		name = "resolved"
	}
	return tx.Emit(ctx, event.Of(a.Tenant, actor, "alert", name, a.ID(), a.Payload()))
}

// alertFromRow returns the alert of a row, without labels that are no longer readable.
func alertFromRow(row store.Alert) Alert {
	a := Alert{Source: row.Source, Key: row.Key, Severity: row.Severity, Title: row.Title, Tenant: row.Tenant}
	_ = json.Unmarshal(row.Labels, &a.Labels) // written by put
	return a
}

// severityRank orders severities, 0 the most severe; -1 for none.
func severityRank(severity string) int {
	return slices.Index([]string{Critical, Error, Warn}, severity)
}
