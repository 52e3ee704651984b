package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// freshFor is how long a record is returned without querying the orchestrator again.
const freshFor = 5 * time.Second

// APIParts are the dependencies of an API.
type APIParts struct {
	Book         *Book
	Orchestrator *orchestrator.Client
}

// API serves runs.
type API struct{ APIParts }

// NewAPI returns an API, or an error for a missing part.
func NewAPI(p APIParts) (*API, error) {
	if err := service.RequireParts("run API", p); err != nil {
		return nil, err
	}
	return &API{p}, nil
}

// Get serves GET /retrain/{flow_run_id}.
func (a *API) Get(c echo.Context) error {
	row, err := a.find(c)
	if err != nil {
		return err
	}
	status, err := a.status(c.Request().Context(), row)
	if err != nil {
		return err
	}
	if err := a.showTrainedCommit(c.Request().Context(), row, &status); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, status)
}

// showTrainedCommit replaces the requested commit with the one that the run's version was trained from.
func (a *API) showTrainedCommit(ctx context.Context, row store.Run, status *api.RunStatus) error {
	version, err := a.Book.Store.VersionOfRun(ctx, row.FlowRunID)
	switch {
	case store.None(err):
		return nil
	case err != nil:
		return err
	}
	if version.ModelID == row.ModelID {
		status.CommitSha = cmp.Or(version.CommitSha, status.CommitSha)
	}
	return nil
}

// Cancel serves POST /retrain/{flow_run_id}/cancel.
func (a *API) Cancel(c echo.Context) error {
	ctx := c.Request().Context()
	row, err := a.find(c)
	if err != nil {
		return err
	}
	status, err := a.status(ctx, row)
	if err != nil {
		return err
	}
	if status.IsTerminal {
		return fault.RunEnded.New(fmt.Sprintf("Run %s has ended: %s.", row.FlowRunID, *status.StateType))
	}
	id, err := uuid.Parse(row.FlowRunID)
	if err != nil {
		return notFound()
	}
	askCtx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	verdict, err := a.Orchestrator.SetState(askCtx, id, orchestrator.State{Type: orchestrator.Cancelling, Name: "Cancelling"}, false)
	switch {
	case errors.Is(err, orchestrator.ErrNotFound):
		return notFound()
	case err != nil:
		return orchestratorFault(err)
	case verdict.Status == orchestrator.Abort:
		return fault.OrchestratorRejected.New("The orchestrator refused to cancel the run: " + verdict.Details.Reason)
	}
	p, _ := auth.FromContext(ctx)
	if err := a.Book.Store.InTx(ctx, func(tx store.Tx) error {
		return tx.Emit(ctx, event.Audit(p.Tenant, p.Name, "run.cancel", event.Model(row.ModelID), event.OK,
			map[string]any{"flow_run_id": row.FlowRunID, "state": row.StateType}))
	}); err != nil {
		return err
	}
	if r, err := a.Orchestrator.ReadFlowRun(askCtx, id); err == nil && row.Tenant != "" {
		if row, err = a.Book.Apply(ctx, row.FlowRunID, seenFromRun(r)); err != nil {
			return err
		}
		return c.JSON(http.StatusAccepted, toRunStatus(row, false))
	}
	status.Stale = true // requested, but the result is not known yet
	return c.JSON(http.StatusAccepted, status)
}

// List serves GET /runs.
func (a *API) List(c echo.Context) error {
	page, err := wire.PageOf[uuid.UUID](c)
	if err != nil {
		return err
	}
	q := store.ListRunsParams{Before: page.After, MaxRows: page.Fetch()}
	if v := c.QueryParam("state"); v != "" {
		state := strings.ToUpper(v)
		if !slices.Contains(orchestrator.StateTypes, orchestrator.StateType(state)) {
			return fault.Invalid("must be a state such as RUNNING or COMPLETED", "query", "state")
		}
		q.StateType = &state
	}
	if v := c.QueryParam("model"); v != "" {
		id := registry.ID(v)
		q.ModelID = &id
	}
	p, _ := auth.FromContext(c.Request().Context())
	q.Tenant = p.Tenant
	rows, err := a.Book.Store.ListRuns(c.Request().Context(), q)
	if err != nil {
		return err
	}
	rows, next := wire.CutPage(page, rows, func(r store.ListRunsRow) uuid.UUID { return r.Run.ID })
	out := api.RunList{Items: make([]api.Run, 0, len(rows)), NextCursor: next}
	for _, row := range rows {
		item, err := toRun(row)
		if err != nil {
			return err
		}
		out.Items = append(out.Items, item)
	}
	return c.JSON(http.StatusOK, out)
}

func toRun(row store.ListRunsRow) (api.Run, error) {
	r := row.Run
	dispatched := r.DispatchedAt.UTC()
	out := api.Run{
		FlowRunId: r.FlowRunID, ModelId: r.ModelID, DatasetName: r.DatasetName, Origin: r.Origin, StateType: r.StateType,
		CommitSha: cmp.Or(row.TrainedCommit, r.CommitSha), ApprovalId: r.ApprovalID, ModelVersion: r.ModelVersion,
		StartedAt: wire.UTC(r.StartedAt), EndedAt: wire.UTC(r.EndedAt),
		IsDummy: &r.IsDummy, IsGenerated: row.IsGenerated, RequestedBy: &r.RequestedBy, Requesters: &r.Requesters,
		DispatchedAt: &dispatched, Reason: r.Reason, TrackerRunId: r.TrackerRunID,
	}
	if row.Metrics == nil {
		return out, nil
	}
	if err := json.Unmarshal(row.Metrics, &out.Metrics); err != nil {
		return out, fmt.Errorf("metrics of %s version %s: %w", r.ModelID, wire.Deref(r.ModelVersion), err)
	}
	return out, nil
}

func notFound() error {
	return fault.RunNotFound.New("There is no such training run in your tenant; GET /runs lists them.")
}

// find returns the record. The legacy credential sees the runs of every tenant,
// including runs dispatched elsewhere, which have no tenant.
func (a *API) find(c echo.Context) (store.Run, error) {
	ctx := c.Request().Context()
	id, err := uuid.Parse(c.Param("flow_run_id"))
	if err != nil {
		return store.Run{}, notFound() // the orchestrator's ids are all UUIDs
	}
	p, _ := auth.FromContext(ctx)
	row, err := a.Book.Store.GetRun(ctx, id.String())
	switch {
	case store.None(err) && p.Legacy:
		return store.Run{FlowRunID: id.String()}, nil
	case store.None(err), err == nil && row.Tenant != p.Tenant && !p.Legacy:
		return store.Run{}, notFound()
	}
	return row, err
}

// status returns the record, refreshed if it may have changed.
func (a *API) status(ctx context.Context, row store.Run) (api.RunStatus, error) {
	if row.Terminal || a.Book.Now().Sub(row.CheckedAt) < freshFor {
		return toRunStatus(row, false), nil
	}
	id, err := uuid.Parse(row.FlowRunID)
	if err != nil {
		return toRunStatus(row, true), nil
	}
	askCtx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	r, err := a.Orchestrator.ReadFlowRun(askCtx, id)
	if row.Tenant == "" { // dispatched elsewhere
		switch {
		case errors.Is(err, orchestrator.ErrNotFound):
			return api.RunStatus{}, notFound()
		case err != nil:
			return api.RunStatus{}, orchestratorFault(err)
		}
		row.StateType, row.StateName, row.Terminal = string(r.StateType), r.StateName, r.StateType.Terminal()
		return toRunStatus(row, false), nil
	}
	if err != nil {
		return toRunStatus(row, true), nil
	}
	if row, err = a.Book.Apply(ctx, row.FlowRunID, seenFromRun(r)); err != nil {
		return api.RunStatus{}, err
	}
	return toRunStatus(row, false), nil
}

func orchestratorFault(err error) error {
	var answered *orchestrator.Error
	if errors.As(err, &answered) && !answered.Temporary() {
		return fault.OrchestratorRejected.New(fmt.Sprintf("The orchestrator refused with status %d: %s", answered.Status, answered.Detail)).WithCause(err)
	}
	return fault.OrchestratorUnreachable.New("The orchestrator does not answer; try again later.").WithCause(err)
}

func toRunStatus(r store.Run, stale bool) api.RunStatus {
	return api.RunStatus{
		FlowRunId: r.FlowRunID, StateType: wire.OptionalText(r.StateType), StateName: wire.OptionalText(r.StateName), IsTerminal: r.Terminal,
		ModelId: wire.OptionalText(r.ModelID), DatasetName: wire.OptionalText(r.DatasetName), CommitSha: r.CommitSha,
		ModelVersion: r.ModelVersion, TrackerRunId: r.TrackerRunID, Stale: stale,
	}
}
