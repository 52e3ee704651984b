package cost

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/control-plane/internal/alias"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// maxHours limits the hours of one job: ten thousand GPUs for over a year. A larger number is in the wrong unit.
const maxHours = 1e8

// maxRate limits the price of an hour, as in the service's settings.
const maxRate = 1e4

// trackerTimeout limits the lookup of a model in the tracker.
const trackerTimeout = 5 * time.Second

// defaultProject bears the cost of jobs without a project.
const defaultProject = "default"

// Service stores the records.
type Service struct {
	store    *store.Store
	registry *registry.Registry
	tracker  *tracker.Client
	rates    Rates
	now      func() time.Time
}

// NewService returns a Service that stores in db and prices at the rates; now is the clock.
func NewService(db *store.Store, reg *registry.Registry, track *tracker.Client, rates Rates, now func() time.Time) *Service {
	return &Service{store: db, registry: reg, tracker: track, rates: rates, now: now}
}

// requireModel returns 404 for a model that the repository and the tracker do not know, and never knew.
func (s *Service) requireModel(ctx context.Context, tenant, id string) error {
	unknown := s.registry.RequireKnown(ctx, s.store.Queries, tenant, id)
	var p *problem.Error
	if unknown == nil || !errors.As(unknown, &p) || p.Kind.Code != fault.ModelNotFound.Code {
		return unknown
	}
	// It may be too new for this replica's last read.
	ctx, cancel := context.WithTimeout(ctx, trackerTimeout)
	defer cancel()
	_, err := s.tracker.GetRegisteredModel(ctx, s.registry.TrackerName(id))
	switch {
	case errors.Is(err, tracker.ErrNotFound):
		return unknown
	case err != nil:
		return alias.Problem(err)
	}
	return nil
}

// put inserts or updates. project is the requested one, if any: without it, spend stays in the project that bore it
// first.
func (s *Service) put(ctx context.Context, tx store.Tx, in store.InsertCostParams, project *string) (row store.Cost, recorded bool, err error) {
	row, err = tx.InsertCost(ctx, in)
	if err == nil {
		return row, true, tx.Emit(ctx, event.Audit(in.Tenant, in.UpdatedBy, "cost.recorded", event.Model(in.ModelID), event.OK,
			map[string]any{"new": s.view(row)}))
	}
	if !store.None(err) {
		return row, false, err
	}
	old, err := tx.LockCost(ctx, store.LockCostParams{
		Tenant: in.Tenant, ModelID: in.ModelID, Version: in.Version, Scheduler: in.Scheduler, JobID: in.JobID,
	})
	if err != nil {
		return row, false, err
	}
	up := store.UpdateCostParams{
		ID: old.ID, RunID: old.RunID, Project: old.Project, GpuHours: in.GpuHours, CpuHours: in.CpuHours, CostUsd: in.CostUsd,
		Now: in.Now, UpdatedBy: in.UpdatedBy,
	}
	if in.RunID != nil {
		up.RunID = in.RunID
	}
	if project != nil {
		up.Project = *project
	}
	if sameCost(old, up) {
		return old, false, nil
	}
	if row, err = tx.UpdateCost(ctx, up); err != nil {
		return row, false, err
	}
	return row, false, tx.Emit(ctx, event.Audit(in.Tenant, in.UpdatedBy, "cost.updated", event.Model(in.ModelID), event.OK,
		map[string]any{"old": s.view(old), "new": s.view(row)}))
}

func sameCost(old store.Cost, up store.UpdateCostParams) bool {
	return equalPointers(old.RunID, up.RunID) && old.Project == up.Project && old.GpuHours == up.GpuHours && old.CpuHours == up.CpuHours && old.CostUsd == up.CostUsd
}

func equalPointers[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// input validates a body and returns its new record.
func (s *Service) input(b api.CostInput) (store.InsertCostParams, error) {
	var faults []problem.Field
	bad := func(msg, name string) { faults = append(faults, problem.Field{Loc: []string{"body", name}, Msg: msg}) }
	if !registry.ValidName(b.Model) {
		bad(registry.NameRule, "model")
	}
	for _, f := range []struct {
		name  string
		value *string
	}{{"version", &b.Version}, {"job_id", &b.JobId}, {"run_id", b.RunId}, {"project", b.Project}} {
		if f.value != nil && !wire.Label(*f.value) {
			bad(wire.LabelRule, f.name)
		}
	}
	if !b.Scheduler.Valid() {
		bad("must be slurm, flux or mock", "scheduler")
	}
	synthetic := b.Scheduler == mock
	hours := func(name string, v *float64, made float64) float64 {
		switch {
		case v == nil && synthetic:
			return made
		case v == nil:
			bad("must be given; only scheduler mock has a default", name)
			return 0
		case !(*v >= 0 && *v <= maxHours): // also NaN
			bad(fmt.Sprintf("must be a number of hours from 0 to %.0f", maxHours), name)
			return 0
		}
		return Round(*v)
	}
	in := store.InsertCostParams{
		ID: uuid.Must(uuid.NewV7()), ModelID: registry.ID(b.Model), Version: b.Version, Scheduler: string(b.Scheduler), JobID: b.JobId,
		RunID: b.RunId, Project: defaultProject, Synthetic: synthetic, Now: s.now(),
		GpuHours: hours("gpu_hours", b.GpuHours, modelrepo.MockGPUHours(b.Model, b.Version)), CpuHours: hours("cpu_hours", b.CpuHours, 0),
	}
	rates := s.rates
	for _, r := range []struct {
		name  string
		given *float64
		rate  *float64
	}{{"gpu_cost_per_hour", b.GpuCostPerHour, &rates.GPUHourUSD}, {"cpu_cost_per_hour", b.CpuCostPerHour, &rates.CPUHourUSD}} {
		switch {
		case r.given == nil:
		case !(*r.given >= 0 && *r.given <= maxRate):
			bad(fmt.Sprintf("must be a price in USD from 0 to %.0f", maxRate), r.name)
		default:
			*r.rate = *r.given
		}
	}
	in.CostUsd = rates.USD(in.Scheduler, in.GpuHours, in.CpuHours)
	if m, ok := s.registry.Find(b.Model); ok {
		in.Project = m.Project
	}
	if b.Project != nil {
		in.Project = *b.Project
	}
	return in, fault.InvalidAll(faults)
}

func (s *Service) view(r store.Cost) api.Cost {
	e := s.rates.Energy(r.GpuHours, r.CpuHours)
	return api.Cost{
		Id: r.ID, Model: r.ModelID, Version: r.Version, RunId: r.RunID, Scheduler: api.Scheduler(r.Scheduler), JobId: r.JobID, Project: r.Project,
		GpuHours: r.GpuHours, CpuHours: r.CpuHours, CostUsd: r.CostUsd, Kwh: e.KWh, Co2eG: e.CO2eG, Synthetic: r.Synthetic,
		RecordedAt: r.RecordedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(), UpdatedBy: r.UpdatedBy,
	}
}
