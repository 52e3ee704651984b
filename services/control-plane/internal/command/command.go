// Package command makes dispatches durable. A command is written, in the transaction
// of the action that requires it, before the orchestrator is called:
//
//	dispatching → succeeded   the orchestrator accepted the run
//	dispatching → failed      it did not; nothing runs
//	failed → dispatching      the same caller repeats the request under the same key
//
// When the process that owns a command dies, another takes it over after the lease
// expires and sends it again under the same orchestrator key, which returns the run of
// the first attempt, if there was one. A takeover increments the attempt number, and
// settling requires the number it started with, so a former owner that was merely slow
// settles nothing.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/dispatch"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/run"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// The kinds of command.
const (
	Retrain  = "retrain"
	Approval = "approval"
)

// The states of a command.
const (
	Dispatching = "dispatching"
	Succeeded   = "succeeded"
	Failed      = "failed"
)

// Settler applies the consequences of an outcome beyond the run itself, in the
// transaction that settles a command of its kind.
type Settler interface {
	Succeeded(ctx context.Context, tx store.Tx, c store.Command, flowRunID string) error
	Failed(ctx context.Context, tx store.Tx, c store.Command, cause *problem.Error) error
}

// Parts are the dependencies of a Service.
type Parts struct {
	Store  *store.Store
	Sender *dispatch.Sender
	Log    *slog.Logger
	Now    func() time.Time
	// Lease is how long the sending process owns a command.
	Lease time.Duration
	// Owner is this process: a new UUID at each start.
	Owner uuid.UUID
	// Settlers has one entry per kind.
	Settlers map[string]Settler
	// Observe is called with the outcome and duration of each dispatch.
	Observe func(c store.Command, err error, took time.Duration)
}

// Service writes, sends and settles commands.
type Service struct{ Parts }

// New returns a Service, or an error for a missing part.
func New(p Parts) (*Service, error) {
	if err := service.RequireParts("command", p); err != nil {
		return nil, err
	}
	return &Service{p}, nil
}

// Spec is a command to write.
type Spec struct {
	Kind            string
	Principal       string
	KeyHash         []byte // nil without an idempotency key
	BodyHash        []byte
	OrchestratorKey string
	Request         dispatch.Request
}

// Write adds the command to the caller's transaction, owned by this process.
func (s *Service) Write(ctx context.Context, tx store.Tx, id uuid.UUID, spec Spec) (store.Command, error) {
	request, err := json.Marshal(spec.Request)
	if err != nil {
		return store.Command{}, fmt.Errorf("command: encode request: %w", err)
	}
	return tx.InsertCommand(ctx, store.InsertCommandParams{
		ID: id, Kind: spec.Kind, Tenant: spec.Request.Tenant, Principal: spec.Principal,
		KeyHash: spec.KeyHash, BodyHash: spec.BodyHash, OrchestratorKey: spec.OrchestratorKey,
		ModelID: spec.Request.Model, DatasetName: spec.Request.Dataset, Request: request, ApprovalID: spec.Request.ApprovalID,
		Owner: s.Owner, LeaseSeconds: s.Lease.Seconds(),
	})
}

// Restart claims a failed command for this process, to send it again.
func (s *Service) Restart(ctx context.Context, tx store.Tx, id uuid.UUID) (store.Command, error) {
	return tx.RestartCommand(ctx, store.RestartCommandParams{ID: id, Owner: s.Owner, LeaseSeconds: s.Lease.Seconds()})
}

// errFenced means that another process has taken the command over.
var errFenced = errors.New("command was taken over by another process")

// Send dispatches a command that this process owns and settles it. The answer is the
// stored one. It continues when ctx is cancelled.
func (s *Service) Send(ctx context.Context, c store.Command) (_ api.Dispatch, err error) {
	ctx = context.WithoutCancel(ctx)
	var r dispatch.Request
	if err := json.Unmarshal(c.Request, &r); err != nil {
		return api.Dispatch{}, fmt.Errorf("command %s: decode request: %w", c.ID, err)
	}
	ctx, span := service.ContinueTrace(ctx, r.Traceparent, "dispatch "+c.Kind)
	defer func() { service.EndSpan(span, err) }()
	start := time.Now()
	accepted, err := s.Sender.Send(ctx, r, c.OrchestratorKey)
	if s.Observe != nil {
		took := time.Since(start)
		defer func() { s.Observe(c, err, took) }()
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err != nil {
		return s.fail(ctx, c, err)
	}
	answer := api.Dispatch{
		FlowRunId: accepted.FlowRunID, Deployment: s.Sender.Target().Name(),
		StatusUrl: StatusURL(accepted.FlowRunID), Parameters: accepted.Parameters,
	}
	return s.succeed(ctx, c, r, answer)
}

// StatusURL returns the path of a run.
func StatusURL(flowRunID string) string { return "/retrain/" + flowRunID }

func (s *Service) succeed(ctx context.Context, c store.Command, r dispatch.Request, answer api.Dispatch) (api.Dispatch, error) {
	response, err := json.Marshal(answer)
	if err != nil {
		return api.Dispatch{}, fmt.Errorf("command %s: encode answer: %w", c.ID, err)
	}
	err = s.Store.InTx(ctx, func(tx store.Tx) error {
		if err := s.settle(ctx, tx, store.SettleCommandParams{
			ID: c.ID, Attempt: c.Attempt, Status: Succeeded, FlowRunID: &answer.FlowRunId, Response: response,
		}); err != nil {
			return err
		}
		if err := run.Record(ctx, tx, r, answer.FlowRunId, s.Now()); err != nil {
			return err
		}
		return s.Settlers[c.Kind].Succeeded(ctx, tx, c, answer.FlowRunId)
	})
	if errors.Is(err, errFenced) {
		return s.fenced(ctx, c)
	}
	return answer, err
}

// fail records why the dispatch failed and returns the reason.
func (s *Service) fail(ctx context.Context, c store.Command, cause error) (api.Dispatch, error) {
	p := problem.From(cause)
	text := p.Error()
	err := s.Store.InTx(ctx, func(tx store.Tx) error {
		if err := s.settle(ctx, tx, store.SettleCommandParams{ID: c.ID, Attempt: c.Attempt, Status: Failed, Error: &text}); err != nil {
			return err
		}
		return s.Settlers[c.Kind].Failed(ctx, tx, c, p)
	})
	if errors.Is(err, errFenced) {
		return s.fenced(ctx, c)
	}
	return api.Dispatch{}, errors.Join(cause, err)
}

func (s *Service) settle(ctx context.Context, tx store.Tx, p store.SettleCommandParams) error {
	n, err := tx.SettleCommand(ctx, p)
	if err == nil && n == 0 {
		return errFenced
	}
	return err
}

// fenced returns the answer of a process that was too slow: the result of the new owner,
// which is the same run under the same key.
func (s *Service) fenced(ctx context.Context, c store.Command) (answer api.Dispatch, err error) {
	now, err := s.Store.GetCommand(ctx, c.ID)
	switch {
	case err != nil:
		return answer, err
	case now.Status != Succeeded:
		return answer, fault.CommandInProgress.New("This command took so long that another process took it over; check the runs or try again.").After(time.Second)
	}
	if err := json.Unmarshal(now.Response, &answer); err != nil {
		return answer, fmt.Errorf("command %s: decode answer: %w", c.ID, err)
	}
	return answer, nil
}

// workEvery is the interval at which the leader looks for abandoned commands.
const workEvery = 3 * time.Second

// Work takes over commands whose lease has expired and deletes those older than 30 days,
// until ctx ends. One replica runs it, under a lease.
func (s *Service) Work(ctx context.Context) error {
	tick := time.NewTicker(workEvery)
	defer tick.Stop()
	for {
		if err := s.TakeOver(ctx, false); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "taking over commands failed", slog.Any("err", err))
		}
		if _, err := s.Store.DeleteOldCommands(ctx); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "deleting old commands failed", slog.Any("err", err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// TakeOver sends the commands of dead processes again. With others, the commands of
// every other process count as abandoned, which is correct only if this is the only
// process.
func (s *Service) TakeOver(ctx context.Context, others bool) error {
	for {
		left, err := s.Store.ClaimCommands(ctx, store.ClaimCommandsParams{Owner: s.Owner, LeaseSeconds: s.Lease.Seconds(), Others: others})
		if err != nil || len(left) == 0 {
			return err
		}
		for _, c := range left {
			s.resend(ctx, c)
		}
	}
}

func (s *Service) resend(ctx context.Context, c store.Command) {
	var r struct {
		RequestID string `json:"request_id"`
	}
	_ = json.Unmarshal(c.Request, &r) // Send reports a request that cannot be read
	ctx = service.WithRequestID(ctx, r.RequestID)
	log := s.Log.With(slog.String("command", c.ID.String()), slog.String("kind", c.Kind), slog.Int("attempt", int(c.Attempt)))
	answer, err := s.Send(ctx, c)
	if err != nil {
		log.WarnContext(ctx, "command left behind could not be sent again", slog.Any("err", err))
		return
	}
	log.InfoContext(ctx, "command left behind was sent again", slog.String("flow_run_id", answer.FlowRunId))
}
