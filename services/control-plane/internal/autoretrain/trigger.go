package autoretrain

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/approval"
	"github.com/mlp-platform/platform/services/control-plane/internal/command"
	"github.com/mlp-platform/platform/services/control-plane/internal/dispatch"
	"github.com/mlp-platform/platform/services/control-plane/internal/drift"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/guarded"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/retrain"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// Origin of records and runs caused by drift.
const Origin = "drift"

// System is the principal of triggers without a caller.
var System = auth.Principal{Name: "system:drift", Tenant: auth.LegacyTenant}

const (
	// claimFor is longer than a dispatch: nothing is begun after prepareFor, and sending and settling take at most 22
	// s.
	claimFor   = time.Minute
	prepareFor = 30 * time.Second
	// releaseTimeout limits the release of a claim, even while the process stops.
	releaseTimeout = 5 * time.Second
)

// Parts are the dependencies of a Service.
type Parts struct {
	Store     *store.Store
	Drift     *drift.Reader
	Registry  *registry.Registry
	Retrain   *retrain.API
	Approvals *approval.Service
	// ForceApproval reports whether every gate is approval.
	ForceApproval func() bool
	// Guard keeps changes until a second person approves them.
	Guard *guarded.Service
	// Every is the interval of the leader's checks.
	Every time.Duration
	Log   *slog.Logger
	Now   func() time.Time
}

// Service triggers retraining. It is safe for concurrent use across replicas.
type Service struct {
	Parts
	stamper
}

// New returns a Service, or an error for a missing part.
func New(p Parts) (*Service, error) {
	if err := service.RequireParts("autoretrain", p); err != nil {
		return nil, err
	}
	s := &Service{p, stamper{p.Now}}
	p.Guard.Handle(guarded.AutoRetrain, s.applyChange)
	return s, nil
}

// Run triggers each interval until ctx ends. One replica runs it, under a lease.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(s.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if _, err := s.Trigger(ctx, System, "", false); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "looking for drift failed", slog.Any("err", err))
		}
	}
}

// Trigger checks the model, or all enabled models, and trains those that drift. A dry run only reports what would
// happen. The error is the store's.
func (s *Service) Trigger(ctx context.Context, p auth.Principal, model string, dry bool) ([]Result, error) {
	var tenant *string // nil: of every tenant, each in its name
	if !auth.System(p.Name) {
		tenant = &p.Tenant
	}
	rows, err := s.Store.EnabledAutoRetrain(ctx, store.EnabledAutoRetrainParams{ModelID: wire.OptionalText(model), Tenant: tenant})
	if err != nil {
		return nil, err
	}
	if model != "" && len(rows) == 0 {
		return []Result{(Result{Model: model}).with(Failed, "auto-retrain of %s is not enabled; PUT /auto-retrain/%s enables it", model, model)}, nil
	}
	levels := s.read(ctx, rows, model)
	out := make([]Result, 0, len(rows))
	for _, row := range rows {
		res := judgeDrift(row, levels)
		if tenant == nil {
			if p.Tenant, err = s.Registry.Owner(ctx, s.Store.Queries, row.ModelID); err != nil {
				return out, err
			}
		}
		if res.Outcome == WouldTrigger {
			if res, err = s.act(ctx, p, row, res, dry); err != nil {
				return out, err
			}
		}
		out = append(out, res)
		if dry {
			continue
		}
		if err := s.settle(ctx, p, res); err != nil {
			return out, err
		}
	}
	return out, nil
}

// act creates a record or a run for a model that drifts enough.
func (s *Service) act(ctx context.Context, p auth.Principal, row store.AutoRetrain, res Result, dry bool) (Result, error) {
	m, ok := s.Registry.Find(row.ModelID)
	if !ok {
		return res.with(Failed, "model %s is not in the model repository", row.ModelID), nil
	}
	d, err := s.Registry.RequireDataset(m, wire.Deref(row.DatasetName))
	if err != nil {
		return res.with(Failed, "%s", problem.From(err).Detail), nil
	}
	switch {
	case dry:
		stop, err := s.hindrance(ctx, s.Store.Queries, p.Tenant, row, res)
		if err != nil || stop != nil {
			return orResult(stop, res), err
		}
		undecided, err := s.undecided(ctx, p.Tenant, row)
		if err != nil || undecided == nil {
			return res, err
		}
		return alreadyPending(res, *undecided), nil
	case s.gate(row) == Direct:
		return s.dispatch(ctx, p, row, d.Name, res)
	}
	return s.request(ctx, p, row, res)
}

func (s *Service) gate(row store.AutoRetrain) string {
	if s.ForceApproval() {
		return Approval
	}
	return row.Gate
}

// undecided returns a record that already waits, where the gate requires one.
func (s *Service) undecided(ctx context.Context, tenant string, row store.AutoRetrain) (*uuid.UUID, error) {
	if s.gate(row) != Approval {
		return nil, nil
	}
	id, err := s.Store.WaitingRetrain(ctx, store.WaitingRetrainParams{Tenant: tenant, ModelID: row.ModelID})
	if store.None(err) {
		return nil, nil
	}
	return &id, err
}

func alreadyPending(res Result, id uuid.UUID) Result {
	res.ApprovalID = &id
	return res.with(AlreadyPending, "a change of %s waits for its decision", res.Model)
}

func orResult(r *Result, otherwise Result) Result {
	if r != nil {
		return *r
	}
	return otherwise
}

// hindrance returns the reason why a model whose row was just read must not be triggered now. The cooldown is the
// tenant's own.
func (s *Service) hindrance(ctx context.Context, q *store.Queries, tenant string, row store.AutoRetrain, res Result) (*Result, error) {
	now := s.Now()
	if !row.Enabled {
		res = res.with(Failed, "auto-retrain of %s was disabled meanwhile", row.ModelID)
		return &res, nil
	}
	last, err := q.GetTriggered(ctx, store.GetTriggeredParams{ModelID: row.ModelID, Tenant: tenant})
	switch {
	case err != nil && !store.None(err):
		return nil, err
	case err == nil:
		if left := last.Add(time.Duration(row.CooldownSeconds) * time.Second).Sub(now); left > 0 {
			res = res.with(CoolingDown, "triggered at %s; again in %d s", last.UTC().Format(time.RFC3339), int((left+time.Second-1)/time.Second))
			return &res, nil
		}
	}
	if row.ClaimUntil != nil && row.ClaimUntil.After(now) {
		res = res.with(AlreadyPending, "another trigger of %s is at work", row.ModelID)
		return &res, nil
	}
	open, err := q.OpenDriftWork(ctx, store.OpenDriftWorkParams{ModelID: row.ModelID, Tenant: tenant})
	switch {
	case err != nil || open == "":
		return nil, err
	case open == "dispatching": // of a dead process: its command is sent again, and stamps the row
		res = res.with(AlreadyPending, "training of %s because of drift is being dispatched", row.ModelID)
	case open == "foreign":
		res = res.with(AlreadyPending, "a run of %s caused by drift has not ended", row.ModelID)
	default:
		res = res.with(AlreadyPending, "run %s, caused by drift, has not ended", open)
	}
	return &res, nil
}

// hindered is an error that rolls back a transaction and carries the result out of it.
type hindered struct{ Result }

func (h hindered) Error() string { return h.Reason }

// request creates an approval record. The record, the stamp of the trigger, event and audit fact are one transaction.
func (s *Service) request(ctx context.Context, p auth.Principal, row store.AutoRetrain, res Result) (Result, error) {
	commit, err := s.commit(ctx, row.ModelID)
	if err != nil {
		return res, err
	}
	if err := s.Approvals.ExpireDue(ctx); err != nil {
		return res, err
	}
	notice := approval.Notice{
		Models: []string{row.ModelID}, CommitSHA: commit, CommitMsg: res.Reason, ChangedFiles: []string{}, Origin: Origin, Dataset: wire.Deref(row.DatasetName),
	}
	var noted approval.Noted
	err = s.Store.InTx(ctx, func(tx store.Tx) error {
		now, err := tx.LockAutoRetrain(ctx, row.ModelID)
		if err != nil {
			return err
		}
		if stop, err := s.hindrance(ctx, tx.Queries, p.Tenant, now, res); err != nil {
			return err
		} else if stop != nil {
			return hindered{*stop}
		}
		if noted, err = s.Approvals.NoteIn(ctx, tx, p, notice); err != nil {
			return err
		}
		if len(noted.Existing) > 0 {
			return hindered{alreadyPending(res, noted.Existing[0])}
		}
		if len(noted.Superseded) > 0 { // drift does not supersede a pending change
			return hindered{alreadyPending(res, noted.Superseded[0])}
		}
		records, err := tx.UndecidedRetrain(ctx, store.UndecidedRetrainParams{Tenant: p.Tenant, ModelID: row.ModelID})
		if err != nil {
			return err
		}
		for _, a := range records {
			if a.ID != noted.Created[0] { // one that is being approved
				return hindered{alreadyPending(res, a.ID)}
			}
		}
		return s.stamp(ctx, tx, p, row.ModelID, Requested, res.Z, map[string]any{"approval_id": noted.Created[0], "gate": Approval})
	})
	var stop hindered
	switch {
	case errors.As(err, &stop):
		return stop.Result, nil
	case err != nil:
		return res, err
	}
	s.Approvals.Counted(noted)
	res.ApprovalID = &noted.Created[0]
	return res.with(Requested, "%s", res.Reason), nil
}

// commit returns the commit to train the model from: the registry's, else the last one known.
func (s *Service) commit(ctx context.Context, model string) (string, error) {
	if head := s.Registry.Head(); head != "" {
		return head, nil
	}
	f, err := s.Store.GetFreshness(ctx, model)
	if err != nil && !store.None(err) {
		return "", err
	}
	return cmp.Or(wire.Deref(f.LatestModelrepoCommit), wire.Deref(f.LastRetrainCommit)), nil
}

// stamp records in a transaction that a trigger had an effect; the cooldown of the tenant it acted for begins.
func (s stamper) stamp(ctx context.Context, tx store.Tx, p auth.Principal, model, outcome string, z *float64, details map[string]any) error {
	now := s.now()
	if err := tx.SetTriggered(ctx, store.SetTriggeredParams{ModelID: model, Tenant: p.Tenant, Now: now, Outcome: &outcome}); err != nil {
		return err
	}
	details["outcome"], details["z_score"] = outcome, z
	return tx.Emit(ctx,
		event.Of(event.PlatformTenant, p.Name, "drift", "retrain_requested", model, event.DriftRetrain{Model: model, ZScore: z, Outcome: outcome}),
		event.Audit(p.Tenant, p.Name, "drift.retrain_requested", event.Model(model), event.OK, details))
}

// dispatch starts a run under a claim. The stamp is set when the dispatch is settled; see Settler.
func (s *Service) dispatch(ctx context.Context, p auth.Principal, row store.AutoRetrain, dataset string, res Result) (Result, error) {
	var claimed store.AutoRetrain
	var stop *Result
	until := s.Now().Add(claimFor)
	if err := s.Store.InTx(ctx, func(tx store.Tx) error {
		now, err := tx.LockAutoRetrain(ctx, row.ModelID)
		if err != nil {
			return err
		}
		if stop, err = s.hindrance(ctx, tx.Queries, p.Tenant, now, res); err != nil || stop != nil {
			return err
		}
		claimed = now
		// A claim that ran out is continued by the next process, in the name of its maker: its command may exist. A
		// claim that was released is continued by its maker.
		died := now.Claim != nil && now.ClaimUntil != nil
		own := now.Claim != nil && wire.Deref(now.ClaimTenant) == p.Tenant && wire.Deref(now.ClaimBy) == p.Name && wire.Deref(now.ClaimDataset) == dataset
		if !died && !own {
			id := uuid.Must(uuid.NewV7())
			claimed.Claim, claimed.ClaimTenant, claimed.ClaimBy, claimed.ClaimDataset = &id, &p.Tenant, &p.Name, &dataset
		}
		return tx.ClaimTrigger(ctx, store.ClaimTriggerParams{
			ModelID: row.ModelID, Claim: claimed.Claim, ClaimUntil: &until, ClaimTenant: claimed.ClaimTenant, ClaimBy: claimed.ClaimBy,
			ClaimDataset: claimed.ClaimDataset, ClaimZ: res.Z,
		})
	}); err != nil {
		return res, err
	}
	if stop != nil {
		return *stop, nil
	}
	who := auth.Principal{Name: *claimed.ClaimBy, Tenant: *claimed.ClaimTenant}
	// This timeout covers everything before the dispatch, so that a process that was stopped for long does not continue
	// where another has taken over.
	sendCtx, cancel := context.WithTimeout(ctx, prepareFor)
	defer cancel()
	run, err := s.Retrain.Dispatch(sendCtx, who, fmt.Sprintf("drift:%s:%s", row.ModelID, claimed.Claim), dispatch.Request{
		Model: row.ModelID, Dataset: *claimed.ClaimDataset, Origin: Origin,
	})
	if err == nil {
		if who.Tenant == p.Tenant {
			res.FlowRunID = run
		}
		return res.with(Dispatched, "%s", res.Reason), nil
	}
	why := problem.From(err)
	if why.Kind.Code == fault.CommandInProgress.Code { // ours, sent by a process that may live
		return res.with(AlreadyPending, "%s", why.Detail), nil
	}
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := s.Store.ReleaseTrigger(release, store.ReleaseTriggerParams{ModelID: row.ModelID, Claim: claimed.Claim}); err != nil {
		s.Log.WarnContext(ctx, "claim of a trigger not released; it will expire", slog.String("model", row.ModelID), slog.Any("err", err))
	}
	if why.Kind.Code == fault.RetrainInFlight.Code {
		return res.with(AlreadyPending, "%s", why.Detail), nil
	}
	if why.Kind.Status >= 500 {
		s.Log.WarnContext(ctx, "drift led to no training", slog.String("model", row.ModelID), slog.Any("err", err))
	}
	return res.with(Failed, "%s: %s", why.Kind.Code, why.Detail), nil
}

// settle stores the outcome of a check and reports one that should have led to training and did not, once until it
// changes. A cooldown is reported by its stamp.
func (s *Service) settle(ctx context.Context, p auth.Principal, res Result) error {
	switch res.Outcome {
	case Requested, Dispatched, CoolingDown:
		return nil
	}
	return s.Store.InTx(ctx, func(tx store.Tx) error {
		n, err := tx.SetTriggerOutcome(ctx, store.SetTriggerOutcomeParams{ModelID: res.Model, Outcome: &res.Outcome})
		if err != nil || n == 0 || (res.Outcome != BlockedCorrupt && res.Outcome != Failed) {
			return err
		}
		outcome := event.Failed
		if res.Outcome == BlockedCorrupt {
			outcome = event.Denied
		}
		return tx.Emit(ctx,
			event.Of(event.PlatformTenant, p.Name, "drift", "retrain_blocked", res.Model, event.DriftRetrain{
				Model: res.Model, ZScore: res.Z, Outcome: res.Outcome, Reason: wire.OptionalText(res.Reason),
			}),
			event.Audit(p.Tenant, p.Name, "drift.retrain_blocked", event.Model(res.Model), outcome, map[string]any{
				"outcome": res.Outcome, "z_score": res.Z, "reason": res.Reason,
			}))
	})
}

// Settler stamps the trigger in the transaction in which its dispatch succeeded, whichever process sent it; it passes
// everything else to next.
type Settler struct {
	next command.Settler
	stamper
}

// NewSettler returns a Settler that passes commands without a trigger to next; now is the clock.
func NewSettler(next command.Settler, now func() time.Time) Settler {
	return Settler{next, stamper{now}}
}

// stamper records that a trigger was carried out.
type stamper struct{ now func() time.Time }

// Succeeded is part of command.Settler.
func (t Settler) Succeeded(ctx context.Context, tx store.Tx, c store.Command, flowRunID string) error {
	if err := t.next.Succeeded(ctx, tx, c, flowRunID); err != nil {
		return err
	}
	var r dispatch.Request
	if err := json.Unmarshal(c.Request, &r); err != nil || r.Origin != Origin {
		return err
	}
	row, err := tx.LockAutoRetrain(ctx, r.Model)
	switch {
	case store.None(err):
		return nil
	case err != nil:
		return err
	}
	return t.stamp(ctx, tx, auth.Principal{Name: c.Principal, Tenant: c.Tenant}, r.Model, Dispatched, row.ClaimZ,
		map[string]any{"flow_run_id": flowRunID, "gate": Direct})
}

// Failed is part of command.Settler.
func (t Settler) Failed(ctx context.Context, tx store.Tx, c store.Command, cause *problem.Error) error {
	return t.next.Failed(ctx, tx, c, cause)
}
