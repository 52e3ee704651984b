// Package flag decides which features a caller sees. Flags are defined here; an admin can override one for their own
// tenant, on or off. Decisions are made from memory, since every proxied request needs one.
package flag

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/announce"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/refresh"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/store"
)

// Config of New.
type Config struct {
	Pool *pgxpool.Pool
	Log  *slog.Logger
}

// Flags are the definitions with every tenant's overrides. The methods may be called at once from many goroutines.
type Flags struct {
	cfg       Config
	overrides atomic.Pointer[map[override]bool]
}

type override struct{ tenant, name string }

// New returns flags without overrides until Load.
func New(cfg Config) (*Flags, error) {
	if err := service.RequireParts("flag", cfg); err != nil {
		return nil, err
	}
	f := &Flags{cfg: cfg}
	f.overrides.Store(&map[override]bool{})
	return f, nil
}

// Load reads the overrides. The start of the service calls it once, then Watch.
func (f *Flags) Load(ctx context.Context) error {
	rows, err := store.New(f.cfg.Pool).ListFlagOverrides(ctx)
	if err != nil {
		return fmt.Errorf("read the flags: %w", err)
	}
	next := make(map[override]bool, len(rows))
	for _, r := range rows {
		next[override{r.Tenant, r.Name}] = r.Enabled
	}
	f.overrides.Store(&next)
	return nil
}

// Watch reads the overrides again and again until ctx ends.
func (f *Flags) Watch(ctx context.Context) error {
	refresh.Loop(ctx, f.cfg.Log, f.Load)
	return nil
}

// Enabled reports whether a flag is on for who; an unknown flag is an error.
func (f *Flags) Enabled(_ context.Context, who caller.Caller, name string) (bool, error) {
	d, ok := find(name)
	if !ok {
		return false, fmt.Errorf("flag %q is not defined", name)
	}
	return f.evaluate(who, d).enabled, nil
}

func (f *Flags) evaluate(who caller.Caller, d definition) evaluation {
	if v, ok := (*f.overrides.Load())[override{who.Tenant, d.name}]; ok {
		return d.evaluate(who, &v)
	}
	return d.evaluate(who, nil)
}

// set overrides a flag for the caller's tenant, or with nil drops the override; changed is false if there was none.
func (f *Flags) set(ctx context.Context, who caller.Caller, d definition, enabled *bool) (changed bool, err error) {
	err = postgres.InTx(ctx, f.cfg.Pool, func(tx pgx.Tx) error {
		changed = false
		q := store.New(tx)
		if err := q.LockFlag(ctx, store.LockFlagParams{Tenant: who.Tenant, Name: d.name}); err != nil {
			return err
		}
		var old any // true, false, or null for no override
		was, err := q.GetFlagOverride(ctx, store.GetFlagOverrideParams{Tenant: who.Tenant, Name: d.name})
		switch {
		case err == nil:
			old = was
		case !errors.Is(err, pgx.ErrNoRows):
			return err
		case enabled == nil:
			return nil
		}
		action, holds := "flag.set", d.standard
		if enabled == nil {
			action = "flag.clear"
			err = q.DeleteFlagOverride(ctx, store.DeleteFlagOverrideParams{Tenant: who.Tenant, Name: d.name})
		} else {
			holds = *enabled
			err = q.PutFlagOverride(ctx, store.PutFlagOverrideParams{Tenant: who.Tenant, Name: d.name, Enabled: holds, UpdatedBy: who.Subject})
		}
		if err != nil {
			return err
		}
		changed = true
		return announce.Insert(ctx, tx,
			announce.Audit(ctx, who, action, "flag:"+d.name, announce.OK, map[string]any{"role": string(who.Role), "old": old, "new": enabled}),
			outbox.Event{
				Tenant: who.Tenant, Namespace: "event", Name: "flag_changed", SubjectID: d.name, Actor: who.Subject,
				Payload: announce.FlagChanged{Name: d.name, Enabled: holds},
			})
	})
	if err != nil || !changed {
		return false, err
	}
	// This replica decides by the new value at once, the others with their next reading.
	if err := f.Load(context.WithoutCancel(ctx)); err != nil {
		f.cfg.Log.WarnContext(ctx, "flag stored but not yet read back", slog.Any("err", err))
	}
	return true, nil
}

// names of all flags, sorted.
func names() []string {
	out := make([]string, 0, len(definitions))
	for _, d := range definitions {
		out = append(out, d.name)
	}
	slices.Sort(out)
	return out
}
