package autoretrain

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/guarded"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// API serves the settings and the trigger.
type API struct{ Service *Service }

// List serves GET /auto-retrain.
func (a API) List(c echo.Context) error {
	page, err := wire.PageOf[string](c)
	if err != nil {
		return err
	}
	rows, err := a.Service.Store.ListAutoRetrain(c.Request().Context(), store.ListAutoRetrainParams{Tenant: wire.CallerTenant(c), After: page.Start(), MaxRows: page.Fetch()})
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

// Put serves PUT /auto-retrain/{model}. Members missing from the body stay unchanged, so that disabling a model keeps
// its settings.
func (a API) Put(c echo.Context) error {
	ctx := c.Request().Context()
	s := a.Service
	var body settingsOf
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
	var waits *store.GuardedChange
	if err := s.Store.InTx(ctx, func(tx store.Tx) error {
		// Even without a row to lock: of two first writers the later one keeps the earlier one's settings.
		if err := tx.LockKeys(ctx, []string{"auto_retrain:" + m.ID()}); err != nil {
			return err
		}
		details := map[string]any{"old": nil}
		before, err := tx.LockAutoRetrain(ctx, m.ID())
		switch {
		case err == nil:
			details["old"] = termsOf(before)
		case store.None(err):
			before = store.AutoRetrain{ModelID: m.ID(), MinZ: defaultMinZ, CooldownSeconds: defaultCooldown, Gate: Approval, Kind: string(api.Prediction)}
		default:
			return err
		}
		row := body.over(before)
		row.Now, row.UpdatedBy = s.Now(), p.Name
		if waits = nil; row.Enabled && row.Gate == Direct { // even if it was so before: min_z and cooldown decide when
			waits, err = s.Guard.Propose(ctx, tx, p, guarded.Change{Kind: guarded.AutoRetrain, Target: m.ID(), Old: termsOf(before), New: proposed(row)})
			if err != nil || waits != nil {
				return err
			}
		} else if err := s.Guard.Supersede(ctx, tx, p, guarded.AutoRetrain, m.ID()); err != nil {
			return err
		}
		if after, err = s.put(ctx, tx, p, row, details); err != nil {
			return err
		}
		if triggered, err = s.triggered(ctx, tx.Queries, after); err != nil {
			return err
		}
		return nil
	}); err != nil {
		return err
	}
	if waits != nil {
		return guarded.Accepted(c, *waits)
	}
	return c.JSON(http.StatusOK, s.view(after, triggered))
}

// put stores the settings of a model, and records them with details in the ledger.
func (s *Service) put(ctx context.Context, tx store.Tx, p auth.Principal, row store.PutAutoRetrainParams, details map[string]any) (store.AutoRetrain, error) {
	after, err := tx.PutAutoRetrain(ctx, row)
	if err != nil {
		return after, err
	}
	details["new"] = termsOf(after)
	action := "auto_retrain.disabled"
	if after.Enabled {
		action = "auto_retrain.enabled" // a standing authorisation to train
	}
	return after, tx.Emit(ctx, event.Audit(p.Tenant, p.Name, action, event.Model(row.ModelID), event.OK, details))
}

// applyChange carries out an approved change.
func (s *Service) applyChange(ctx context.Context, tx store.Tx, c store.GuardedChange, by auth.Principal) error {
	row, err := decodeChange(c)
	if err != nil {
		return err
	}
	if err := tx.LockKeys(ctx, []string{"auto_retrain:" + row.ModelID}); err != nil {
		return err
	}
	row.Now, row.UpdatedBy = s.Now(), by.Name
	_, err = s.put(ctx, tx, by, row, map[string]any{"old": c.Old})
	return err
}

// decodeChange parses the settings of a change, including one that an older version left pending: those have Go's field
// names.
func decodeChange(c store.GuardedChange) (row store.PutAutoRetrainParams, err error) {
	if json.Unmarshal(c.New, &row) == nil && row.ModelID != "" {
		return row, nil
	}
	var t terms
	if err := json.Unmarshal(c.New, &t); err != nil {
		return row, fmt.Errorf("guarded change %s: decode settings: %w", c.ID, err)
	}
	return t.row(c.Target), nil
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
	if model != "" {
		if err := a.Service.Registry.RequireOwned(ctx, a.Service.Store.Queries, p.Tenant, model); err != nil {
			return err
		}
	}
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
