package alias

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

const (
	watchEvery  = 30 * time.Second
	resumeEvery = 3 * time.Second
)

// Run checks the tracker every 30 s for moves by others and finishes abandoned planned
// moves, until ctx ends. One replica runs it, under a lease.
func (m *Mover) Run(ctx context.Context) error {
	resume, watch := time.NewTicker(resumeEvery), time.NewTicker(watchEvery)
	defer resume.Stop()
	defer watch.Stop()
	m.logged(ctx, "watching aliases failed", m.Watch(ctx))
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-resume.C:
			m.logged(ctx, "finishing alias moves failed", m.Resume(ctx, false))
		case <-watch.C:
			m.logged(ctx, "watching aliases failed", m.Watch(ctx))
		}
	}
}

func (m *Mover) logged(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		m.Log.WarnContext(ctx, what, slog.Any("err", err))
	}
}

// Watch compares all aliases in the tracker with the history. Only models that differ
// are read again, under their lease.
func (m *Mover) Watch(ctx context.Context) error {
	rows, err := m.Store.CurrentHolders(ctx)
	if err != nil {
		return err
	}
	known := map[string]Holders{}
	for _, r := range rows {
		if known[r.ModelID] == nil {
			known[r.ModelID] = Holders{}
		}
		if r.Version != nil {
			known[r.ModelID][r.Alias] = *r.Version
		}
	}
	found := map[string]Holders{}
	var names []string
	for rm, err := range m.Tracker.SearchRegisteredModels(ctx, "") {
		if err != nil {
			return err
		}
		found[m.Registry.IDOf(rm.Name)] = knownAliases(rm.Aliases)
		names = append(names, rm.Name)
	}
	m.Registry.SetTracked(names)
	var faults []error
	for model := range unionOfModels(known, found) {
		if !sameHolders(known[model], found[model]) {
			faults = append(faults, m.Hold(ctx, model, func(context.Context, Holders) error { return nil }))
		}
	}
	return errors.Join(append(faults, m.digestSeen(ctx, found), m.bindHolders(ctx))...)
}

func unionOfModels(a, b map[string]Holders) map[string]struct{} {
	all := map[string]struct{}{}
	for k := range a {
		all[k] = struct{}{}
	}
	for k := range b {
		all[k] = struct{}{}
	}
	return all
}

func sameHolders(a, b Holders) bool {
	for _, alias := range modelrepo.Aliases {
		if a[alias] != b[alias] {
			return false
		}
	}
	return true
}

// Resume finishes planned moves whose process has died or whose tracker did not answer.
// With every, it does not wait until they are due, which is correct only if this is the
// only process.
func (m *Mover) Resume(ctx context.Context, every bool) error {
	due, err := m.Store.DueAliasMoves(ctx, every)
	if err != nil {
		return err
	}
	var faults []error
	for _, move := range due {
		one, span := service.ContinueTrace(service.WithRequestID(ctx, wire.Deref(move.RequestID)), wire.Deref(move.Traceparent), "resume alias move")
		err := m.resume(one, move)
		service.EndSpan(span, err)
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

func (m *Mover) resume(ctx context.Context, move store.AliasMove) error {
	return m.Hold(ctx, move.ModelID, func(ctx context.Context, holders Holders) error {
		switch now := holders[move.Alias]; now {
		case move.Version: // the tracker was updated before the process died
			return m.finish(ctx, move)
		case wire.Deref(move.PreviousVersion):
			_, err := m.Carry(ctx, move)
			return err
		default:
			if err := m.fail(ctx, move, "the alias was moved to version "+now+" meanwhile"); err != nil {
				return err
			}
			return m.reconcile(ctx, move.ModelID, holders)
		}
	})
}
