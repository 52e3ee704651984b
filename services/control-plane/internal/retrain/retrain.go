// Package retrain serves POST /retrain: a training run at once, without an approval, for callers with the scope. With
// an idempotency key a request may be repeated for 30 days and starts one run.
package retrain

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/command"
	"github.com/mlp-platform/platform/services/control-plane/internal/dispatch"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/lock"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/separation"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// keepKeys is how long a key returns the stored answer.
const keepKeys = 30 * 24 * time.Hour

// lockFor is how long a lock outlives its holder's process.
const lockFor = 30 * time.Second

// Parts are the dependencies of an API.
type Parts struct {
	Store     *store.Store
	Commands  *command.Service
	Registry  *registry.Registry
	Admission *dispatch.Admission
	Locks     *lock.Locker
	Now       func() time.Time
}

// API serves POST /retrain.
type API struct{ Parts }

// New returns an API, or an error for a missing part.
func New(p Parts) (*API, error) {
	if err := service.RequireParts("retrain", p); err != nil {
		return nil, err
	}
	return &API{p}, nil
}

func validateRequest(b api.RetrainRequest) error {
	var faults []problem.Field
	bad := func(name, msg string) { faults = append(faults, problem.Field{Loc: []string{"body", name}, Msg: msg}) }
	for _, f := range []struct{ name, value string }{{"model_name", b.ModelName}, {"dataset_name", b.DatasetName}} {
		switch {
		case f.value == "":
			bad(f.name, "is required")
		case !registry.ValidName(f.value):
			bad(f.name, registry.NameRule)
		}
	}
	if b.BackendName != nil && !b.BackendName.Valid() {
		bad("backend_name", "must be public_archive, object_store, dataplane or local")
	}
	if b.Parameters != nil {
		for _, name := range slices.Sorted(maps.Keys(*b.Parameters)) {
			if dispatch.Reserved(name) {
				faults = append(faults, problem.Field{Loc: []string{"body", "parameters", name}, Msg: "is set by the platform and cannot be overridden"})
			}
		}
	}
	return fault.InvalidAll(faults)
}

// idempotencyKey reads the key from either header; it is empty if neither is set.
func idempotencyKey(h http.Header) (string, error) {
	key := ""
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		for _, v := range h.Values(name) {
			if !validKey(v) {
				return "", fault.InvalidIdempotencyKey.New("An idempotency key must be 1 to 255 printable ASCII characters.")
			}
			if key != "" && key != v {
				return "", fault.InvalidIdempotencyKey.New("Idempotency-Key and X-Idempotency-Key differ; send one of them.")
			}
			key = v
		}
	}
	return key, nil
}

func validKey(key string) bool {
	return len(key) >= 1 && len(key) <= 255 && strings.IndexFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// start is the request body after validation.
func (a *API) start(ctx context.Context, p auth.Principal, key string, b api.RetrainRequest) (api.Dispatch, bool, error) {
	r := dispatch.Request{Model: registry.ID(b.ModelName), Dataset: b.DatasetName, Origin: "api"}
	if b.BackendName != nil {
		r.Backend = string(*b.BackendName)
	}
	if b.IsDummy != nil {
		r.Dummy = *b.IsDummy
	}
	if b.Parameters != nil {
		r.Parameters = *b.Parameters
	}
	return a.dispatch(ctx, p, key, r)
}

// Dispatch starts a training run for p as POST /retrain does, but without its rate limit, and returns the id of the
// run. With a non-empty key the same request may be repeated for 30 days and starts one run. Of r only Model, Dataset,
// Dummy, Backend, Parameters, CommitSHA and Origin count; an empty Dataset is the model's first, an empty CommitSHA the
// registry's. The error is one of the endpoint's problems.
func (a *API) Dispatch(ctx context.Context, p auth.Principal, key string, r dispatch.Request) (flowRunID string, err error) {
	r = dispatch.Request{
		Model: registry.ID(r.Model), Dataset: r.Dataset, Dummy: r.Dummy, Backend: r.Backend, Parameters: r.Parameters,
		CommitSHA: r.CommitSHA, Origin: r.Origin,
	}
	answer, _, err := a.dispatch(ctx, p, key, r)
	return answer.FlowRunId, err
}

// dispatch finds the stored answer, or writes a command and sends it.
func (a *API) dispatch(ctx context.Context, p auth.Principal, key string, r dispatch.Request) (api.Dispatch, bool, error) {
	spec := command.Spec{Kind: command.Retrain, Principal: p.Name}
	if key != "" {
		// With tenant and principal in the hash, one caller's keys can neither
		// collide with nor probe another's, including at the orchestrator.
		sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", p.Tenant, p.Name, key))
		spec.KeyHash = sum[:]
		spec.OrchestratorKey = fmt.Sprintf("retrain:%x", sum)
		// A key may be repeated with an equivalent body: the case of names and members that state a default make no
		// difference.
		same := r
		same.Dataset = strings.ToLower(r.Dataset)
		raw, err := json.Marshal(same)
		if err != nil {
			return api.Dispatch{}, false, err
		}
		hash := sha256.Sum256(raw)
		spec.BodyHash = hash[:]
		// Checked first: a repeated request must get its answer even under full load.
		if answer, done, err := a.find(ctx, p, spec); err != nil || done {
			return answer, done, err
		}
	}
	m, err := a.Registry.Require(r.Model)
	if err != nil {
		return api.Dispatch{}, false, err
	}
	d, err := a.Registry.RequireDataset(m, r.Dataset)
	if err != nil {
		return api.Dispatch{}, false, err
	}
	r.Model, r.Dataset, r.Tenant, r.RequestedBy, r.RequestID = m.ID(), d.Name, p.Tenant, p.Name, service.RequestID(ctx)
	r.Traceparent = service.Traceparent(ctx)
	if r.Backend == "" {
		r.Backend = registry.Backend(m, d)
	}
	if r.CommitSHA == "" {
		r.CommitSHA = a.Registry.Head()
	}
	spec.Request = r
	if key != "" {
		// The second of two requests with one key must not be refused because of the
		// first one's training.
		_, unlock, ok, err := a.Locks.Keep(context.WithoutCancel(ctx), spec.OrchestratorKey, lockFor)
		switch {
		case err != nil:
			return api.Dispatch{}, false, noCoordinator(err)
		case !ok:
			return api.Dispatch{}, true, inProgress()
		}
		defer unlock()
		if answer, done, err := a.find(ctx, p, spec); err != nil || done {
			return answer, done, err
		}
	}
	leave, err := a.Admission.Enter(p.Tenant)
	if err != nil {
		return api.Dispatch{}, false, err
	}
	defer leave()
	_, unlock, ok, err := a.Locks.Keep(context.WithoutCancel(ctx), fmt.Sprintf("retrain:%s:%s:%s", p.Tenant, m.ID(), d.Name), lockFor)
	switch {
	case err != nil:
		return api.Dispatch{}, false, noCoordinator(err)
	case !ok:
		return api.Dispatch{}, false, inFlight(spec.Request)
	}
	defer unlock()
	c, answer, done, err := a.write(ctx, spec)
	if err != nil || done {
		return answer, done, err
	}
	answer, err = a.Commands.Send(ctx, c)
	return answer, false, err
}

// find returns the answer to a key that was used before; done is false if there is none.
func (a *API) find(ctx context.Context, p auth.Principal, spec command.Spec) (answer api.Dispatch, done bool, err error) {
	c, err := a.Store.FindCommand(ctx, store.FindCommandParams{Tenant: p.Tenant, Principal: p.Name, KeyHash: spec.KeyHash})
	switch {
	case store.None(err):
		return answer, false, nil
	case err != nil || a.expired(c):
		return answer, false, err
	}
	return replayCommand(c, spec)
}

func noCoordinator(err error) error {
	return fault.CoordinatorUnavailable.New("The coordinator that keeps two replicas from starting the same training does not answer; try again later.").
		WithCause(err).After(5 * time.Second)
}

func inFlight(r dispatch.Request) error {
	return fault.RetrainInFlight.New(fmt.Sprintf("Training of %s on %s is being dispatched right now; look at GET /runs?model=%s before you start another.", r.Model, r.Dataset, r.Model)).
		After(time.Second)
}

// write adds the command, or finds the result of a concurrent request with the same
// key.
func (a *API) write(ctx context.Context, spec command.Spec) (c store.Command, answer api.Dispatch, done bool, err error) {
	err = a.Store.InTx(ctx, func(tx store.Tx) error {
		done = false
		if spec.KeyHash != nil {
			had, err := tx.LockCommand(ctx, store.LockCommandParams{Tenant: spec.Request.Tenant, Principal: spec.Principal, KeyHash: spec.KeyHash})
			switch {
			case store.None(err):
			case err != nil:
				return err
			case a.expired(had):
				if err := tx.ForgetCommand(ctx, had.ID); err != nil {
					return err
				}
			default:
				if answer, done, err = replayCommand(had, spec); done {
					return err
				}
				c, err = a.Commands.Restart(ctx, tx, had.ID)
				return err
			}
		}
		id := uuid.Must(uuid.NewV7())
		if spec.OrchestratorKey == "" {
			spec.OrchestratorKey = "retrain:" + id.String()
		}
		pushers, err := tx.PushersSince(ctx, spec.Request.Model)
		if err != nil {
			return err
		}
		spec.Request.Requesters = separation.MergeNames([]string{spec.Principal}, pushers.Requesters)
		spec.Request.PersonUnknown = pushers.PersonUnknown
		if c, err = a.Commands.Write(ctx, tx, id, spec); err != nil {
			return err
		}
		r := spec.Request
		return tx.Emit(ctx, event.Audit(r.Tenant, r.RequestedBy, "retrain.requested", event.Model(r.Model), event.OK, map[string]any{
			"command_id": id, "dataset": r.Dataset, "is_dummy": r.Dummy, "backend": r.Backend, "parameters": r.Parameters,
		}))
	})
	switch {
	case postgres.IsUnique(err, "commands_retrain_in_flight"):
		// The command of a dead process keeps its slot until it has been sent again.
		return c, answer, false, inFlight(spec.Request)
	case postgres.IsUnique(err, "commands_key"):
		return c, answer, false, inProgress()
	}
	return c, answer, done, err
}

func (a *API) expired(c store.Command) bool {
	return c.Status != command.Dispatching && a.Now().Sub(c.CreatedAt) > keepKeys
}

func inProgress() error {
	return fault.CommandInProgress.New("The request with this idempotency key is still being dispatched; repeat it in a moment to get its answer.").After(time.Second)
}

// replayCommand answers a key that was used before; done is false if that attempt failed
// and may be repeated.
func replayCommand(c store.Command, spec command.Spec) (answer api.Dispatch, done bool, err error) {
	switch {
	case string(c.BodyHash) != string(spec.BodyHash):
		return answer, true, fault.IdempotencyConflict.New("This idempotency key was used with another body; use a new key for a new request.")
	case c.Status == command.Dispatching:
		return answer, true, inProgress()
	case c.Status == command.Failed:
		return answer, false, nil
	}
	if err := json.Unmarshal(c.Response, &answer); err != nil {
		return answer, true, fmt.Errorf("retrain: stored answer of command %s: %w", c.ID, err)
	}
	return answer, true, nil
}

// Settler records in the ledger how a retrain command ended.
type Settler struct{}

// Succeeded is part of command.Settler.
func (Settler) Succeeded(ctx context.Context, tx store.Tx, c store.Command, flowRunID string) error {
	return tx.Emit(ctx, event.Audit(c.Tenant, c.Principal, "retrain.dispatched", event.Model(c.ModelID), event.OK,
		map[string]any{"command_id": c.ID, "dataset": c.DatasetName, "flow_run_id": flowRunID}))
}

// Failed is part of command.Settler.
func (Settler) Failed(ctx context.Context, tx store.Tx, c store.Command, cause *problem.Error) error {
	return tx.Emit(ctx, event.Audit(c.Tenant, c.Principal, "retrain.dispatched", event.Model(c.ModelID), event.Failed,
		map[string]any{"command_id": c.ID, "dataset": c.DatasetName, "code": cause.Kind.Code}))
}
