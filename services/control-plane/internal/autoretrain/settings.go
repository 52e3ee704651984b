package autoretrain

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// The gates.
const (
	Approval = "approval"
	Direct   = "direct"
)

// Any looks at predictions and inputs; it is a kind beside those of package drift.
const Any = "any"

// The settings of a model for which none were made.
const (
	defaultMinZ     = 3.0
	defaultCooldown = 3600
	maxCooldown     = 365 * 24 * 3600 // seconds
)

// API serves the settings and the trigger.
type API struct{ Service *Service }

// List serves GET /auto-retrain.
func (a API) List(c echo.Context) error {
	page, err := wire.PageOf[string](c)
	if err != nil {
		return err
	}
	rows, err := a.Service.Store.ListAutoRetrain(c.Request().Context(), store.ListAutoRetrainParams{After: page.Start(), MaxRows: page.Fetch()})
	if err != nil {
		return err
	}
	rows, next := wire.CutPage(page, rows, func(r store.AutoRetrain) string { return r.ModelID })
	triggered, err := a.Service.triggered(c.Request().Context(), a.Service.Store.Queries, rows...)
	if err != nil {
		return err
	}
	out := api.AutoRetrainList{Items: make([]api.AutoRetrain, 0, len(rows)), NextCursor: next}
	for _, r := range rows {
		out.Items = append(out.Items, a.Service.view(r, triggered))
	}
	return c.JSON(http.StatusOK, out)
}

// triggered is when the caller's tenant last triggered each of the models.
func (s *Service) triggered(ctx context.Context, q *store.Queries, rows ...store.AutoRetrain) (map[string]time.Time, error) {
	p, _ := auth.FromContext(ctx)
	models := make([]string, len(rows))
	for i, r := range rows {
		models[i] = r.ModelID
	}
	stamps, err := q.ListTriggered(ctx, store.ListTriggeredParams{Tenant: p.Tenant, Models: models})
	out := make(map[string]time.Time, len(stamps))
	for _, st := range stamps {
		out[st.ModelID] = st.TriggeredAt.UTC()
	}
	return out, err
}

func (s *Service) view(r store.AutoRetrain, triggered map[string]time.Time) api.AutoRetrain {
	var last *time.Time
	if at, ok := triggered[r.ModelID]; ok {
		last = &at
	}
	return api.AutoRetrain{
		Model: r.ModelID, Enabled: r.Enabled, DatasetName: r.DatasetName, MinZ: r.MinZ, CooldownSeconds: r.CooldownSeconds,
		Gate: api.AutoRetrainGate(r.Gate), GateForced: s.ForceApproval, Kind: api.DriftKind(r.Kind),
		LastTriggeredAt: last, LastOutcome: r.LastOutcome, UpdatedAt: r.UpdatedAt.UTC(), UpdatedBy: r.UpdatedBy,
	}
}

// settings is api.AutoRetrainInput that tells a number of 0 from none.
type settings struct {
	Enabled         *bool    `json:"enabled"`
	DatasetName     *string  `json:"dataset_name"`
	MinZ            *float64 `json:"min_z"`
	CooldownSeconds *int64   `json:"cooldown_seconds"`
	Gate            *string  `json:"gate"`
	Kind            *string  `json:"kind"`
}

func (b settings) validate() error {
	var faults []problem.Field
	bad := func(msg, name string) { faults = append(faults, problem.Field{Loc: []string{"body", name}, Msg: msg}) }
	if b.Enabled == nil {
		bad("is required", "enabled")
	}
	if b.DatasetName != nil && *b.DatasetName != "" && !registry.ValidName(*b.DatasetName) {
		bad(registry.NameRule, "dataset_name")
	}
	if b.MinZ != nil && (!(*b.MinZ > 0) || *b.MinZ > math.MaxFloat32) {
		bad("must be a number above 0", "min_z")
	}
	if b.CooldownSeconds != nil && (*b.CooldownSeconds < 0 || *b.CooldownSeconds > maxCooldown) {
		bad("must be 0 to 31536000 seconds", "cooldown_seconds")
	}
	if b.Gate != nil && *b.Gate != Approval && *b.Gate != Direct {
		bad("must be approval or direct", "gate")
	}
	if b.Kind != nil && !api.DriftKind(*b.Kind).Valid() {
		bad("must be prediction, input or any", "kind")
	}
	return fault.InvalidAll(faults)
}

// over gives the row with what was set put over what it was.
func (b settings) over(row store.AutoRetrain) store.PutAutoRetrainParams {
	out := store.PutAutoRetrainParams{
		ModelID: row.ModelID, Enabled: *b.Enabled, DatasetName: row.DatasetName, MinZ: row.MinZ,
		CooldownSeconds: row.CooldownSeconds, Gate: row.Gate, Kind: row.Kind,
	}
	if b.DatasetName != nil {
		out.DatasetName = wire.OptionalText(*b.DatasetName)
	}
	if b.MinZ != nil {
		out.MinZ = *b.MinZ
	}
	if b.CooldownSeconds != nil {
		out.CooldownSeconds = int32(*b.CooldownSeconds)
	}
	if b.Gate != nil {
		out.Gate = *b.Gate
	}
	if b.Kind != nil {
		out.Kind = *b.Kind
	}
	return out
}

// Put serves PUT /auto-retrain/{model}. What the body leaves out stays as it is,
// so that disabling a model keeps its settings.
func (a API) Put(c echo.Context) error {
	ctx := c.Request().Context()
	s := a.Service
	var body settings
	if err := wire.Decode(c, &body); err != nil {
		return err
	}
	if err := body.validate(); err != nil {
		return err
	}
	m, err := s.Registry.Require(c.Param("model"))
	if err != nil {
		return err
	}
	if body.DatasetName != nil && *body.DatasetName != "" {
		d, err := s.Registry.RequireDataset(m, *body.DatasetName)
		if err != nil {
			return err
		}
		body.DatasetName = &d.Name
	}
	p, _ := auth.FromContext(ctx)
	var after store.AutoRetrain
	var triggered map[string]time.Time
	if err := s.Store.InTx(ctx, func(tx store.Tx) error {
		// Also where there is no row to lock: of two first writers the later keeps what the earlier has set.
		if err := tx.LockKeys(ctx, []string{"auto_retrain:" + m.ID()}); err != nil {
			return err
		}
		details := map[string]any{"old": nil}
		before, err := tx.LockAutoRetrain(ctx, m.ID())
		switch {
		case err == nil:
			details["old"] = facts(before)
		case store.None(err):
			before = store.AutoRetrain{ModelID: m.ID(), MinZ: defaultMinZ, CooldownSeconds: defaultCooldown, Gate: Approval, Kind: string(api.Prediction)}
		default:
			return err
		}
		row := body.over(before)
		row.Now, row.UpdatedBy = s.Now(), p.Name
		if after, err = tx.PutAutoRetrain(ctx, row); err != nil {
			return err
		}
		if triggered, err = s.triggered(ctx, tx.Queries, after); err != nil {
			return err
		}
		details["new"] = facts(after)
		action := "auto_retrain.disabled"
		if after.Enabled {
			action = "auto_retrain.enabled" // a standing authorisation to train
		}
		return tx.Emit(ctx, event.Shared(p.Tenant, p.Name, action, event.Model(m.ID()), event.OK, details))
	}); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, s.view(after, triggered))
}

// facts are the settings of a row, for the ledger.
func facts(r store.AutoRetrain) map[string]any {
	return map[string]any{
		"enabled": r.Enabled, "dataset_name": r.DatasetName, "min_z": r.MinZ, "cooldown_seconds": r.CooldownSeconds,
		"gate": r.Gate, "kind": r.Kind,
	}
}

// Trigger serves POST /drift/trigger.
func (a API) Trigger(c echo.Context) error {
	ctx := c.Request().Context()
	var body api.DriftTrigger
	if err := wire.DecodeOptional(c, &body); err != nil {
		return err
	}
	model := ""
	if body.Model != nil {
		if !registry.ValidName(*body.Model) {
			return fault.Invalid(registry.NameRule, "body", "model")
		}
		m, err := a.Service.Registry.Require(*body.Model)
		if err != nil {
			return err
		}
		model = m.ID()
	}
	p, _ := auth.FromContext(ctx)
	results, err := a.Service.Trigger(ctx, p, model, body.DryRun != nil && *body.DryRun)
	if err != nil {
		return err
	}
	out := api.DriftTriggered{Results: make([]api.DriftResult, 0, len(results))}
	for _, r := range results {
		out.Results = append(out.Results, api.DriftResult{
			Model: r.Model, ZScore: r.Z, Outcome: api.DriftOutcome(r.Outcome), FlowRunId: wire.OptionalText(r.FlowRunID),
			ApprovalId: r.ApprovalID, Reason: wire.OptionalText(r.Reason),
		})
	}
	return c.JSON(http.StatusOK, out)
}
