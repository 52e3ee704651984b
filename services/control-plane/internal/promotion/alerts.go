package promotion

import (
	"context"
	"errors"
	"fmt"

	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/control-plane/internal/alert"
	"github.com/mlp-platform/platform/services/control-plane/internal/alias"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
)

// DeploySource is the alert source for aliases.
const DeploySource = "deploy"

// ExternalMove is the value of the label fault for an alias that was moved past the gate.
const ExternalMove = "external_move"

// Firing implements alert.Source. It reports aliases that were moved outside this control plane to versions it would
// have refused: dummies above Staging, and versions without a digest to check their files; every other move of
// Production past the gate while it lasts; and moves that were put back and await a decision.
func (g *Gate) Firing(ctx context.Context) ([]alert.Alert, error) {
	rows, err := g.Store.CurrentHolders(ctx)
	if err != nil {
		return nil, err
	}
	out, err := g.waiting(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if r.Version == nil || r.Via != alias.ViaExternal {
			continue
		}
		mv, err := Version(ctx, g.Tracker, g.Registry.TrackerName(r.ModelID), *r.Version)
		if errors.Is(err, tracker.ErrNotFound) { // the version was deleted, and its alias with it
			continue
		} else if err != nil {
			return nil, err
		}
		run, err := g.run(ctx, mv)
		if err != nil {
			return nil, err
		}
		a := alert.Alert{
			Source: DeploySource, Key: r.ModelID + ":" + r.Alias, Severity: alert.Critical, Tenant: event.PlatformTenant,
			Labels: map[string]string{"model": r.ModelID, "alias": r.Alias, "version": *r.Version},
		}
		_, external := g.Registry.FindExternal(r.ModelID) // its digest is computed at first sight, and being external is not a fault
		switch {
		case alias.Dummy(mv, run) && r.Alias != alias.Staging:
			a.Title = fmt.Sprintf("%s of %s was moved from outside to version %s, which is a dummy.", r.Alias, r.ModelID, *r.Version)
			a.Labels["fault"] = "dummy"
		case !alias.ValidDigest(mv.Tags[TagDigest]) && !external:
			a.Title = fmt.Sprintf("%s of %s was moved from outside to version %s, whose files have no digest to check them by.", r.Alias, r.ModelID, *r.Version)
			a.Labels["fault"] = "digest_missing"
		case r.Alias == alias.Production && !external:
			a.Severity = alert.Warn
			a.Title = fmt.Sprintf("Production of %s was moved from outside to version %s, past the gate.", r.ModelID, *r.Version)
			a.Labels["fault"] = ExternalMove
		default:
			continue
		}
		out = append(out, a)
	}
	return out, nil
}

// waiting lists the undecided moves past the gate that were put back.
func (g *Gate) waiting(ctx context.Context) ([]alert.Alert, error) {
	rows, err := g.Store.PendingOutsidePromotions(ctx)
	if err != nil {
		return nil, err
	}
	out := []alert.Alert{}
	for _, p := range rows {
		out = append(out, alert.Alert{
			Source: DeploySource, Key: p.ModelID + ":" + p.ToAlias + ":" + ExternalMove, Severity: alert.Error, Tenant: event.PlatformTenant,
			Title:  fmt.Sprintf("%s moved %s of %s to version %s, past the gate; it was put back, and promotion %s requests it.", p.RequestedBy, p.ToAlias, p.ModelID, p.Version, p.ID),
			Labels: map[string]string{"model": p.ModelID, "alias": p.ToAlias, "version": p.Version, "promotion_id": p.ID.String(), "fault": ExternalMove},
		})
	}
	return out, nil
}
