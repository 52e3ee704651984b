package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
)

// State describes whether runs can be dispatched.
type State string

// The states of a target.
const (
	Unknown      State = "unknown" // not checked yet
	OK           State = "ok"
	Missing      State = "missing"      // the orchestrator has no such deployment
	Incompatible State = "incompatible" // it lacks a parameter that a run needs
	Unreachable  State = "unreachable"
)

// recheck is the interval at which the deployment is resolved again.
const recheck = 60 * time.Second

// Status is the result of the last check.
type Status struct {
	State     State
	Detail    string
	CheckedAt time.Time
}

// Target is the deployment that training runs are dispatched to.
type Target struct {
	client           *orchestrator.Client
	name             string
	flow, deployment string
	log              *slog.Logger

	mu     sync.Mutex // guards those below
	status Status
	found  *orchestrator.Deployment // nil unless status.State is OK
}

// NewTarget names the deployment as "flow/deployment".
func NewTarget(client *orchestrator.Client, name string, log *slog.Logger) (*Target, error) {
	flow, deployment, ok := strings.Cut(name, "/")
	if !ok || flow == "" || deployment == "" || strings.Contains(deployment, "/") {
		return nil, fmt.Errorf("PREFECT_DEPLOYMENT_NAME is %q; it must be flow/deployment", name)
	}
	return &Target{client: client, name: name, flow: flow, deployment: deployment, log: log, status: Status{State: Unknown}}, nil
}

// Name is "flow/deployment".
func (t *Target) Name() string { return t.name }

// Status returns the result of the last check without a request.
func (t *Target) Status() Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status
}

// Run checks the target now and every minute.
func (t *Target) Run(ctx context.Context) error {
	tick := time.NewTicker(recheck)
	defer tick.Stop()
	for {
		if _, err := t.check(ctx); err != nil && ctx.Err() == nil {
			t.log.WarnContext(ctx, "dispatch target not usable", slog.String("deployment", t.name), slog.Any("err", err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// resolve returns the deployment of the last check, or requests it now.
func (t *Target) resolve(ctx context.Context) (orchestrator.Deployment, error) {
	t.mu.Lock()
	found := t.found
	t.mu.Unlock()
	if found != nil {
		return *found, nil
	}
	return t.check(ctx)
}

// forget makes the next dispatch resolve the deployment again.
func (t *Target) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.found = nil
}

// check queries the orchestrator. The error is a problem if the target is missing or
// incompatible, otherwise the client's.
func (t *Target) check(ctx context.Context) (orchestrator.Deployment, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	d, err := t.client.ReadDeploymentByName(ctx, t.flow, t.deployment)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return orchestrator.Deployment{}, err // shutting down: the result is unknown
	}
	status := Status{State: OK, CheckedAt: time.Now().UTC()}
	switch {
	case errors.Is(err, orchestrator.ErrNotFound):
		status.State = Missing
		status.Detail = fmt.Sprintf("the orchestrator has no deployment %s; its operator must register it", t.name)
		err = fault.DispatchTargetMissing.New("The orchestrator has no deployment " + t.name + "; its operator must register it.").WithCause(err)
	case err != nil:
		status.State, status.Detail = Unreachable, err.Error()
	default:
		if lacking := missingParameters(d); len(lacking) > 0 {
			status.State = Incompatible
			status.Detail = fmt.Sprintf("deployment %s does not accept %s; register the current version", t.name, strings.Join(lacking, ", "))
			err = fault.DispatchTargetMissing.New(fmt.Sprintf("The orchestrator's deployment %s does not accept %s; its operator must register the current version.", t.name, strings.Join(lacking, ", ")))
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status = status
	t.found = nil
	if err == nil {
		t.found = &d
	}
	return d, err
}

// missingParameters lists the required parameters missing in the deployment's schema. A
// deployment without a schema accepts any parameter.
func missingParameters(d orchestrator.Deployment) []string {
	if s := strings.TrimSpace(string(d.ParameterSchema)); s == "" || s == "null" || s == "{}" {
		return nil
	}
	var out []string
	for _, name := range required {
		if !d.DeclaresParameter(name) {
			out = append(out, name)
		}
	}
	return out
}
