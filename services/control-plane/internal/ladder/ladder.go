// Package ladder records versions that the trainer registered. Their test metrics climb the model's ladder: Staging and
// Canary are set at once, and a passed Production rung opens a promotion.
//
// A report is written before the first alias moves and settled after the last step. A climb interrupted by a crash or a
// silent tracker is continued by the next report of the same version, or by the leader.
package ladder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/control-plane/internal/alias"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/promotion"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/run"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

const (
	readTimeout = 15 * time.Second
	// leaveFor is how long the leader leaves a climb to the request that makes it.
	leaveFor    = time.Minute
	resumeEvery = 10 * time.Second
)

// Parts are the dependencies of a Service.
type Parts struct {
	Store      *store.Store
	Tracker    *tracker.Client
	Registry   *registry.Registry
	Mover      *alias.Mover
	Promotions *promotion.Service
	Gate       *promotion.Gate
	Log        *slog.Logger
	Now        func() time.Time
	// MayBind reports whether a report of p may bind the version to a training run, so that the approval of the run
	// covers it.
	MayBind func(p auth.Principal) bool
}

// Service applies the ladder.
type Service struct{ Parts }

// New returns a Service, or an error for a missing part.
func New(p Parts) (*Service, error) {
	if err := service.RequireParts("ladder", p); err != nil {
		return nil, err
	}
	return &Service{p}, nil
}

// Report records one version; repeating the same version returns the same answer.
func (s *Service) Report(ctx context.Context, p auth.Principal, model, version, flowRunID string) (api.LadderResult, error) {
	m, err := s.Registry.Require(model)
	if err != nil {
		return api.LadderResult{}, err
	}
	row, err := s.Store.GetVersion(ctx, store.GetVersionParams{ModelID: m.ID(), Version: version})
	switch {
	case err == nil && flowRunID != "" && row.FlowRunID != nil && *row.FlowRunID != flowRunID:
		return api.LadderResult{}, versionMismatch(version, *row.FlowRunID)
	case err == nil && row.SettledAt != nil:
		return decodeResult(row)
	case store.None(err):
		if row, err = s.take(ctx, p, m, version, flowRunID); err != nil {
			return api.LadderResult{}, err
		}
	case err != nil:
		return api.LadderResult{}, err
	}
	out, err := s.climb(ctx, row)
	if fault.AliasBusy.Has(err) {
		// The report is valid, so the trainer should send it again.
		err = problem.Unavailable.New("Another move of an alias of " + m.ID() + " is not finished; report the version again in a moment.").
			WithCause(err).After(5 * time.Second)
	}
	return out, err
}

func versionMismatch(version, of string) error {
	return fault.VersionMismatch.New(fmt.Sprintf("Version %s was produced by flow run %s, not by the one reported.", version, of))
}

// take reads the version and its run from the tracker, and stores them.
func (s *Service) take(ctx context.Context, p auth.Principal, m *modelrepo.Model, version, flowRunID string) (store.Version, error) {
	readCtx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	mv, err := promotion.Version(readCtx, s.Tracker, m.TrackerName(), version)
	switch {
	case errors.Is(err, tracker.ErrNotFound):
		return store.Version{}, fault.VersionNotFound.New(fmt.Sprintf("The tracker has no version %s of %s.", version, m.TrackerName()))
	case err != nil:
		return store.Version{}, alias.Problem(err)
	}
	var tr tracker.Run
	if mv.RunID != "" {
		if tr, err = s.Tracker.GetRun(readCtx, mv.RunID); err != nil && !errors.Is(err, tracker.ErrNotFound) {
			return store.Version{}, alias.Problem(err)
		}
	}
	// The tracker decides: a caller cannot bind a version to another's run.
	if told := tr.Tags[promotion.TagFlowRun]; told != "" {
		if flowRunID != "" && flowRunID != told {
			return store.Version{}, versionMismatch(version, told)
		}
		flowRunID = told
	}
	in := store.InsertVersionParams{
		ModelID: m.ID(), Version: version, Tenant: p.Tenant, FlowRunID: wire.OptionalText(flowRunID), TrackerRunID: wire.OptionalText(mv.RunID),
		CommitSha: wire.OptionalText(alias.Commit(mv, tr)),
		IsDummy:   alias.Dummy(mv, tr), IsGenerated: promotion.Generated(mv, tr),
		ReportedBy: p.Name, RequestID: wire.OptionalText(service.RequestID(ctx)), Traceparent: wire.OptionalText(service.Traceparent(ctx)), Now: s.Now(),
		Digest: wire.OptionalText(mv.Tags[promotion.TagDigest]), Binds: s.MayBind(p),
	}
	if in.Metrics, err = json.Marshal(finiteMetrics(tr.Metrics)); err != nil {
		return store.Version{}, fmt.Errorf("ladder: encode metrics: %w", err)
	}
	if in.Rungs, err = json.Marshal(s.rungs(m, tr.Metrics, origin{dummy: in.IsDummy, generated: in.IsGenerated, dirty: alias.Dirty(mv, tr)})); err != nil {
		return store.Version{}, fmt.Errorf("ladder: encode rungs: %w", err)
	}
	if err := s.Store.InTx(ctx, func(tx store.Tx) error { return s.write(ctx, tx, in) }); err != nil {
		return store.Version{}, err
	}
	return s.Store.GetVersion(ctx, store.GetVersionParams{ModelID: in.ModelID, Version: version})
}

// write adds the version and binds it to its run. A run that is recorded later takes the version over then, see
// [run.Record].
func (s *Service) write(ctx context.Context, tx store.Tx, in store.InsertVersionParams) error {
	var row store.Run
	known := false
	if in.FlowRunID != nil {
		var err error
		row, err = tx.LockRun(ctx, *in.FlowRunID)
		if known = err == nil && row.ModelID == in.ModelID; !known && err != nil && !store.None(err) {
			return err
		}
		if known {
			in.Tenant = row.Tenant // the version belongs to the run's requester, not to the trainer
		}
	}
	owner, err := s.Registry.Owner(ctx, tx.Queries, in.ModelID)
	if err != nil {
		return err
	}
	if !known {
		// Without a run the trainer reports for the owner. Other tenants may not: a version is reported once.
		if in.Tenant != auth.LegacyTenant {
			if err := s.Registry.RequireOwned(ctx, tx.Queries, in.Tenant, in.ModelID); err != nil {
				return err
			}
		}
		in.Tenant = owner
	}
	n, err := tx.InsertVersion(ctx, in)
	if err != nil || n == 0 { // another replica handled the same report
		return err
	}
	bound := false
	if known && in.Binds && mayProduce(row) {
		n, err := tx.SetRunVersion(ctx, store.SetRunVersionParams{
			FlowRunID: row.FlowRunID, ModelVersion: &in.Version, TrackerRunID: in.TrackerRunID, CommitSha: in.CommitSha,
		})
		if err != nil {
			return err
		}
		bound = n == 1
	}
	if bound {
		v := store.Version{Version: in.Version, CommitSha: in.CommitSha, IsDummy: in.IsDummy}
		if err := run.Trained(ctx, tx, row, v, s.Registry.Head(), in.Now); err != nil {
			return err
		}
	}
	return tx.Emit(ctx, event.Audit(in.Tenant, in.ReportedBy, "version.reported", event.Model(in.ModelID), event.OK, map[string]any{
		"version": in.Version, "flow_run_id": in.FlowRunID, "tracker_run_id": in.TrackerRunID, "commit_sha": in.CommitSha,
		"dummy": in.IsDummy, "generated": in.IsGenerated, "rungs": json.RawMessage(in.Rungs), "bound": bound,
	}))
}

// mayProduce reports whether a run may still turn out to have produced a version: one that ended otherwise than
// completed has none, so no caller may pass theirs off as its own.
func mayProduce(row store.Run) bool {
	return !row.Terminal || row.StateType == string(orchestrator.Completed)
}

// finiteMetrics leaves out values that JSON cannot hold; the evaluation has used them.
func finiteMetrics(metrics map[string]float64) map[string]float64 {
	out := make(map[string]float64, len(metrics))
	maps.Copy(out, metrics)
	maps.DeleteFunc(out, func(_ string, v float64) bool { return !promotion.Finite(v) })
	return out
}

// origin holds the properties of a version's sources that keep it from rising.
type origin struct{ dummy, generated, dirty bool }

// rungs evaluates the metrics, and holds back versions that must not rise regardless of them.
func (s *Service) rungs(m *modelrepo.Model, metrics map[string]float64, from origin) []api.RungResult {
	metrics = maps.Clone(metrics)
	for name, v := range metrics {
		if !promotion.Finite(v) {
			metrics[name] = math.NaN()
		}
	}
	out := []api.RungResult{}
	held := "" // the reason to refuse all rungs from here up
	for _, v := range m.Judge(metrics) {
		switch {
		case held != "":
		case from.dummy && v.Alias != alias.Staging:
			held = "a dummy version goes no further than Staging"
		case from.dirty && v.Alias != alias.Staging:
			held = "a version whose definition no commit holds goes no further than Staging"
		case from.generated && !s.Gate.GeneratedAllowed(v.Alias):
			held = "versions trained on generated data do not reach " + v.Alias + " here"
		}
		r := api.RungResult{Alias: v.Alias, Pass: v.Pass, Reason: wire.OptionalText(v.Reason)}
		if held != "" {
			r.Pass, r.Reason = false, &held
		}
		out = append(out, r)
	}
	return out
}

// notOwned is the reason why a version trained by another tenant takes no alias: the model's policy, and the people who
// approve under it, act only for the model's owner.
var notOwned = "passed, but the version was trained for another tenant than the model's owner"

// climb carries out the passed rungs, and settles the report.
func (s *Service) climb(ctx context.Context, row store.Version) (api.LadderResult, error) {
	var rungs []api.RungResult
	if err := json.Unmarshal(row.Rungs, &rungs); err != nil {
		return api.LadderResult{}, fmt.Errorf("ladder: decode rungs of %s %s: %w", row.ModelID, row.Version, err)
	}
	owner, err := s.Registry.Owner(ctx, s.Store.Queries, row.ModelID)
	if err != nil {
		return api.LadderResult{}, err
	}
	set := []string{}
	var promotionID *uuid.UUID
	for i := range rungs {
		r := &rungs[i]
		switch {
		case !r.Pass:
		case row.Tenant != owner:
			r.Reason = &notOwned
		case r.Alias == alias.Production:
			id, reason, err := s.promote(ctx, row)
			if err != nil {
				return api.LadderResult{}, err
			}
			promotionID, r.Reason = id, wire.OptionalText(reason)
		default:
			reason, err := s.set(ctx, row, r.Alias)
			if err != nil {
				return api.LadderResult{}, err
			}
			if r.Reason = wire.OptionalText(reason); reason == "" {
				set = append(set, r.Alias)
			}
		}
	}
	raw, err := json.Marshal(rungs)
	if err != nil {
		return api.LadderResult{}, fmt.Errorf("ladder: encode rungs: %w", err)
	}
	now := s.Now()
	if err := s.Store.SettleVersion(ctx, store.SettleVersionParams{
		ModelID: row.ModelID, Version: row.Version, AliasesSet: set, PromotionID: promotionID, Rungs: raw, Now: &now,
	}); err != nil {
		return api.LadderResult{}, err
	}
	// Read back: of two concurrent climbs, both return the answer of the first.
	if row, err = s.Store.GetVersion(ctx, store.GetVersionParams{ModelID: row.ModelID, Version: row.Version}); err != nil {
		return api.LadderResult{}, err
	}
	return decodeResult(row)
}

func decodeResult(row store.Version) (api.LadderResult, error) {
	out := api.LadderResult{AliasesSet: row.AliasesSet, PromotionId: row.PromotionID}
	if err := json.Unmarshal(row.Rungs, &out.Rungs); err != nil {
		return out, fmt.Errorf("ladder: decode rungs of %s %s: %w", row.ModelID, row.Version, err)
	}
	return out, nil
}

// set moves Staging or Canary to the version, unless a newer one holds it: a late report must not take an alias back.
func (s *Service) set(ctx context.Context, row store.Version, name string) (reason string, err error) {
	err = s.Mover.Hold(ctx, row.ModelID, func(ctx context.Context, holders alias.Holders) error {
		now := holders[name]
		if now == row.Version {
			return nil
		}
		if newerVersion(now, row.Version) {
			reason = "passed, but the newer version " + now + " holds " + name
			return nil
		}
		if row.IsDummy && now != "" {
			dummy, err := s.isDummy(ctx, row.ModelID, now)
			if err != nil {
				return err
			}
			if !dummy {
				reason = "passed, but version " + now + ", which is no dummy, holds " + name
				return nil
			}
		}
		var move store.AliasMove
		if err := s.Store.InTx(ctx, func(tx store.Tx) (err error) {
			move, err = s.Mover.Plan(ctx, tx, alias.Intent{
				Model: row.ModelID, Alias: name, Version: row.Version, Previous: now, Via: alias.ViaLadder,
				Tenant: row.Tenant, Actor: row.ReportedBy, Dummy: row.IsDummy,
			})
			return err
		}); err != nil {
			return err
		}
		switch done, err := s.Mover.Carry(ctx, move); {
		case err != nil:
			return err
		case !done:
			return fault.TrackerUnreachable.New(fmt.Sprintf("The tracker did not take the move of %s; it is repeated. Report the version again for the rest.", name)).After(5 * time.Second)
		}
		return nil
	})
	return reason, err
}

// isDummy asks the tracker about a version that holds an alias; a deleted one does not block others.
func (s *Service) isDummy(ctx context.Context, model, version string) (bool, error) {
	mv, err := promotion.Version(ctx, s.Tracker, s.Registry.TrackerName(model), version)
	if errors.Is(err, tracker.ErrNotFound) {
		return true, nil
	}
	var tr tracker.Run
	if err == nil && mv.RunID != "" {
		if tr, err = s.Tracker.GetRun(ctx, mv.RunID); errors.Is(err, tracker.ErrNotFound) {
			err = nil
		}
	}
	if err != nil {
		return false, alias.Problem(err)
	}
	return alias.Dummy(mv, tr), nil
}

// newerVersion compares the tracker's version numbers.
func newerVersion(a, b string) bool {
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	return errX == nil && errY == nil && x > y
}

// promote opens the promotion that a passed Production rung requests. The gate may still deny it; the reason is then
// added to the report.
func (s *Service) promote(ctx context.Context, row store.Version) (*uuid.UUID, string, error) {
	asker, err := s.asker(ctx, row)
	if err != nil {
		return nil, "", err
	}
	out, err := s.Promotions.Open(ctx, promotion.Request{
		Question: promotion.Question{Tenant: row.Tenant, Model: row.ModelID, Version: row.Version, To: alias.Production},
		By:       row.ReportedBy, For: asker, Origin: promotion.FromLadder,
	})
	switch {
	case err != nil:
		return nil, "", err
	case out.Promotion == nil:
		return nil, "promotion denied: " + strings.Join(slices.Clip(out.Verdict.Reasons()), "; "), nil
	}
	return &out.Promotion.ID, "", nil
}

// asker returns the person who started the version's run without approval: they, not the trainer that reports the
// version, count as a requester of its promotion. Empty where the run was approved, or the person is not known.
func (s *Service) asker(ctx context.Context, row store.Version) (string, error) {
	if row.FlowRunID == nil {
		return "", nil
	}
	r, err := s.Store.GetRun(ctx, *row.FlowRunID)
	switch {
	case store.None(err):
		return "", nil
	case err != nil || r.ApprovalID != nil || r.ModelID != row.ModelID || r.Tenant != row.Tenant:
		return "", err
	}
	return r.RequestedBy, nil
}

// Run continues interrupted climbs, until ctx ends. One replica runs it, under a lease.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(resumeEvery)
	defer tick.Stop()
	for {
		if err := s.Resume(ctx, s.Now().Add(-leaveFor)); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "taking up ladder climbs failed", slog.Any("err", err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Resume continues climbs of reported versions that are not settled.
func (s *Service) Resume(ctx context.Context, before time.Time) error {
	rows, err := s.Store.UnsettledVersions(ctx, before)
	if err != nil {
		return err
	}
	var faults []error
	for _, row := range rows {
		one, span := service.ContinueTrace(service.WithRequestID(ctx, wire.Deref(row.RequestID)), wire.Deref(row.Traceparent), "resume ladder")
		_, err := s.climb(one, row)
		service.EndSpan(span, err)
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}
