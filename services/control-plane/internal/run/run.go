// Package run tracks the training runs that this control plane dispatched. One
// replica follows those that have not ended, and every state change is published
// as a job event in the transaction that records it.
package run

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/dispatch"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/freshness"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// follower is the actor of state changes read from the orchestrator.
const follower = "system:follower"

// Record adds an accepted run. An existing run (its command was sent a second time)
// is left unchanged.
func Record(ctx context.Context, tx store.Tx, r dispatch.Request, flowRunID string, now time.Time) error {
	added, err := tx.InsertRun(ctx, store.InsertRunParams{
		FlowRunID: flowRunID, ID: uuid.Must(uuid.NewV7()), Tenant: r.Tenant, ModelID: r.Model, DatasetName: r.Dataset,
		IsDummy: r.Dummy, Origin: r.Origin, ApprovalID: r.ApprovalID, RequestedBy: r.RequestedBy,
		RequestID: wire.OptionalText(r.RequestID), CommitSha: wire.OptionalText(r.CommitSHA), Now: now,
		Requesters: requestersOf(r), PersonUnknown: r.PersonUnknown,
	})
	if err != nil || added == 0 {
		return err
	}
	// A short training may report its version before this transaction begins.
	if err := tx.BindReportedVersion(ctx, flowRunID); err != nil {
		return err
	}
	if err := freshness.Triggered(ctx, tx, r.Model, now); err != nil {
		return err
	}
	return tx.Emit(ctx, event.Of(r.Tenant, r.RequestedBy, "job", "dispatched", flowRunID, event.Job{
		Model: r.Model, Dataset: r.Dataset, FlowRunID: flowRunID, Origin: r.Origin,
		ApprovalID: r.ApprovalID, CommitSHA: wire.OptionalText(r.CommitSHA),
	}))
}

// requestersOf returns the requesters of the run; for a command from before they were stored, its sender.
func requestersOf(r dispatch.Request) []string {
	if len(r.Requesters) == 0 {
		return []string{r.RequestedBy}
	}
	return r.Requesters
}

// Seen is the state of a run at the orchestrator.
type Seen struct {
	Type      orchestrator.StateType
	Name      string
	Message   string
	StartTime *time.Time
	EndTime   *time.Time
	Lost      bool // the orchestrator no longer knows the run
}

func seenFromRun(r orchestrator.FlowRun) Seen {
	return Seen{Type: r.StateType, Name: r.StateName, Message: r.Message(), StartTime: r.StartTime, EndTime: r.EndTime}
}

// BookParts are the dependencies of a Book.
type BookParts struct {
	Store *store.Store
	// TrackerRun finds the tracker's run of a flow run; empty while the trainer has not begun one.
	TrackerRun func(ctx context.Context, model, dataset, flowRunID string) (string, error)
	Head       func() string
	Count      func(model, state string)
	Now        func() time.Time
}

// Book records the observed states of runs. Head returns the commit of the model
// repository; Count counts ended runs.
type Book struct{ BookParts }

// NewBook returns a Book, or an error for a missing part.
func NewBook(p BookParts) (*Book, error) {
	if err := service.RequireParts("run", p); err != nil {
		return nil, err
	}
	return &Book{p}, nil
}

// Apply updates one run to the observed state. An ended run does not change.
func (b *Book) Apply(ctx context.Context, flowRunID string, s Seen) (store.Run, error) {
	var after store.Run
	ended := false
	begun := b.lookUpBegun(ctx, flowRunID, s)
	err := b.Store.InTx(ctx, func(tx store.Tx) (err error) {
		ended = false
		row, err := tx.LockRun(ctx, flowRunID)
		if err != nil {
			return err
		}
		after, ended, err = b.apply(ctx, tx, row, s, begun)
		return err
	})
	if err == nil && ended && b.Count != nil {
		b.Count(after.ModelID, after.StateType)
	}
	return after, err
}

// begun describes a run that the orchestrator reports as running for the first time.
type begun struct {
	announce     bool // now: its tracker run is known, or will not be
	trackerRunID *string
}

const (
	// lookUpTimeout limits the query to the tracker.
	lookUpTimeout = 2 * time.Second
	// trackerRunGrace is how long a run may run before it is announced without its tracker run. The trainer begins its
	// tracker run first, so a run still without one is not one of the trainer's.
	trackerRunGrace = 30 * time.Second
)

func hasBegun(s Seen) bool { return s.Type == orchestrator.Running || s.StartTime != nil }

// lookUpBegun reads the run's id from the tracker before the run is announced as started, so that job.started carries
// it: the trainer itself reports it only with the version, at the end.
func (b *Book) lookUpBegun(ctx context.Context, flowRunID string, s Seen) begun {
	if !hasBegun(s) {
		return begun{}
	}
	row, err := b.Store.GetRun(ctx, flowRunID)
	if err != nil || row.StartedAt != nil || row.Terminal || row.TrackerRunID != nil {
		return begun{true, row.TrackerRunID}
	}
	ctx, cancel := context.WithTimeout(ctx, lookUpTimeout)
	defer cancel()
	id, err := b.TrackerRun(ctx, row.ModelID, row.DatasetName, flowRunID)
	if err == nil && id != "" {
		return begun{true, &id}
	}
	waits := !s.Type.Terminal() && s.StartTime != nil && b.Now().Sub(*s.StartTime) < trackerRunGrace
	return begun{announce: !waits}
}

func (b *Book) apply(ctx context.Context, tx store.Tx, row store.Run, s Seen, begun begun) (store.Run, bool, error) {
	now := b.Now()
	if row.Terminal || s.Type == "" {
		return row, false, nil
	}
	announces := row.StartedAt == nil && hasBegun(s) && begun.announce
	if string(s.Type) == row.StateType && s.Name == row.StateName && !announces {
		row.CheckedAt, row.UnknownSince = now, nil
		return row, false, tx.TouchRuns(ctx, store.TouchRunsParams{Now: now, Ids: []string{row.FlowRunID}})
	}
	wasStarted := row.StartedAt != nil
	row.StateType, row.StateName, row.Terminal = string(s.Type), s.Name, s.Type.Terminal()
	row.CheckedAt, row.UnknownSince = now, nil
	// Both in one transaction: a run with a start time has been announced.
	if row.StartedAt == nil && begun.announce {
		row.StartedAt = s.StartTime
		if s.Type == orchestrator.Running && row.StartedAt == nil {
			row.StartedAt = &now
		}
	}
	if row.Terminal {
		row.EndedAt = s.EndTime
		if row.EndedAt == nil {
			row.EndedAt = &now
		}
		if s.Type != orchestrator.Completed {
			row.Reason = wire.OptionalText(s.Message)
		}
	}
	if err := tx.UpdateRunState(ctx, store.UpdateRunStateParams{
		FlowRunID: row.FlowRunID, StateType: row.StateType, StateName: row.StateName, Terminal: row.Terminal,
		Reason: row.Reason, StartedAt: row.StartedAt, EndedAt: row.EndedAt, Now: now,
	}); err != nil {
		return row, false, err
	}
	// A run may start and end between two reads: both events are published.
	if !wasStarted && row.StartedAt != nil {
		if row.TrackerRunID == nil {
			row.TrackerRunID = begun.trackerRunID
		}
		if err := tx.Emit(ctx, event.Of(row.Tenant, follower, "job", "started", row.FlowRunID, event.JobStarted{
			Model: row.ModelID, RunID: row.TrackerRunID, FlowRunID: row.FlowRunID, Dataset: row.DatasetName,
		})); err != nil {
			return row, false, err
		}
	}
	if !row.Terminal {
		return row, false, nil
	}
	if err := b.end(ctx, tx, row, s); err != nil {
		return row, false, err
	}
	return row, true, nil
}

// end publishes the end of a run and updates the model's freshness if it produced a version.
func (b *Book) end(ctx context.Context, tx store.Tx, row store.Run, s Seen) error {
	name := map[orchestrator.StateType]string{
		orchestrator.Completed: "completed", orchestrator.Failed: "failed",
		orchestrator.Cancelled: "cancelled", orchestrator.Crashed: "crashed",
	}[s.Type]
	if s.Lost {
		name = "lost"
	}
	job := event.Job{
		Model: row.ModelID, Dataset: row.DatasetName, FlowRunID: row.FlowRunID, RunID: row.TrackerRunID,
		Version: row.ModelVersion, Reason: row.Reason,
	}
	version, err := tx.VersionOfRun(ctx, row.FlowRunID)
	switch {
	case err == nil:
		if err := json.Unmarshal(version.Metrics, &job.Metrics); err != nil {
			return err
		}
	case !store.None(err):
		return err
	}
	if err := tx.Emit(ctx,
		event.Of(row.Tenant, follower, "job", name, row.FlowRunID, job),
		event.Audit(row.Tenant, follower, "run."+name, event.Model(row.ModelID), auditOutcome(s.Type), map[string]any{
			"flow_run_id": row.FlowRunID, "state": row.StateType, "version": row.ModelVersion, "reason": row.Reason,
		}),
	); err != nil {
		return err
	}
	if err != nil || s.Type != orchestrator.Completed {
		return nil
	}
	return Trained(ctx, tx, row, version, b.Head(), b.Now())
}

// Trained updates the model's freshness for a completed run and its version. It takes effect when the second of the two
// is reported. A version that claims no commit, such as one trained from files that no commit holds, changes nothing,
// whatever commit its run requested.
func Trained(ctx context.Context, tx store.Tx, row store.Run, version store.Version, head string, now time.Time) error {
	if version.CommitSha == nil || row.IsDummy || version.IsDummy || row.StateType != string(orchestrator.Completed) {
		return nil
	}
	// A run of another tenant than the owner does not affect the owner's freshness.
	if owner, err := tx.OwnerOf(ctx, row.ModelID); err != nil || owner != row.Tenant {
		return err
	}
	return freshness.Trained(ctx, tx, freshness.Training{
		Model: row.ModelID, Version: version.Version, Commit: *version.CommitSha, Head: head, Actor: follower,
	}, now)
}

func auditOutcome(t orchestrator.StateType) string {
	if t == orchestrator.Completed {
		return event.OK
	}
	return event.Failed
}
