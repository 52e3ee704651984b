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

// Firing implements alert.Source. It reports versions that others gave an alias and
// that this control plane would have refused: dummies above Staging, and versions
// without a digest to check their files by.
func (g *Gate) Firing(ctx context.Context) ([]alert.Alert, error) {
	rows, err := g.Store.CurrentHolders(ctx)
	if err != nil {
		return nil, err
	}
	out := []alert.Alert{}
	for _, r := range rows {
		if r.Version == nil || r.Via != alias.ViaExternal {
			continue
		}
		mv, err := Version(ctx, g.Tracker, g.Registry.TrackerName(r.ModelID), *r.Version)
		if errors.Is(err, tracker.ErrNotFound) { // deleted, and its alias with it
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
		case Dummy(mv, run) && r.Alias != alias.Staging:
			a.Title = fmt.Sprintf("%s of %s was moved from outside to version %s, which is a dummy.", r.Alias, r.ModelID, *r.Version)
			a.Labels["fault"] = "dummy"
		case !digest.MatchString(mv.Tags[TagDigest]) && !external:
			a.Title = fmt.Sprintf("%s of %s was moved from outside to version %s, whose files have no digest to check them by.", r.Alias, r.ModelID, *r.Version)
			a.Labels["fault"] = "digest_missing"
		default:
			continue
		}
		out = append(out, a)
	}
	return out, nil
}
