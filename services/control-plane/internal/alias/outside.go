package alias

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// Mover names of moves that did not come through this control plane.
const (
	external = "external" // in the history
	// UnknownMover is the requester of a move past the gate. The tracker does not record who moved an alias, and anyone
	// could write a name in a tag.
	UnknownMover = "tracker:unknown"
)

// OutsideMove is a move of Production past the gate.
type OutsideMove struct {
	Model   string
	Version string // empty: the alias was removed
	Holder  string // the version that the control plane admitted; empty: none
	Mover   string
	// Digest is the digest of the version's files according to its tag; empty without one.
	Digest string
}

// Requester opens the promotion requested by a move past the gate, unless one is pending.
type Requester interface {
	MovedPast(ctx context.Context, tx store.Tx, m OutsideMove) error
}

// reconcile handles what the tracker shows but the history does not explain. Aliases with a planned move are left to
// the process that finishes that move. Moves of Production past an enforced gate are put back, and holders is updated
// to match; all others are recorded as external.
func (m *Mover) reconcile(ctx context.Context, model string, holders Holders) error {
	found := false
	var past *OutsideMove
	outside, err := m.readOutside(ctx, model, holders)
	if err != nil {
		return err
	}
	err = m.Store.InTx(ctx, func(tx store.Tx) error {
		found, past = false, nil
		planned, err := tx.PlannedAliasMoves(ctx, model)
		if err != nil {
			return err
		}
		for _, alias := range modelrepo.Aliases {
			if slices.ContainsFunc(planned, func(p store.AliasMove) bool { return p.Alias == alias }) {
				continue
			}
			row, err := tx.CurrentHolder(ctx, store.CurrentHolderParams{ModelID: model, Alias: alias})
			if err != nil && !store.None(err) {
				return err
			}
			var known *string
			if err == nil {
				known = row.Version
			}
			now := wire.OptionalText(holders[alias])
			if wire.Deref(known) == wire.Deref(now) {
				continue
			}
			found = true
			if alias == Production && m.Enforced() {
				past = &OutsideMove{Model: model, Version: wire.Deref(now), Holder: wire.Deref(known), Mover: UnknownMover, Digest: outside.digest}
				if err := m.Outside.MovedPast(ctx, tx, *past); err != nil {
					return err
				}
				continue
			}
			m.Log.InfoContext(ctx, "alias moved by others", slog.String("model", model), slog.String("alias", alias), slog.String("version", wire.Deref(now)))
			c := externalChange(model, alias, known, now)
			if alias == Production {
				c.commit = outside.commit
			}
			if err := m.record(ctx, tx, c); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && past != nil {
		err = m.putBack(ctx, *past, holders)
	}
	if err == nil && found {
		m.External()
	}
	return err
}

// outsideVersion is the tracker's record of a version that got Production outside the control plane.
type outsideVersion struct {
	digest string // under an enforced gate: the files that the deciders are shown
	commit string // otherwise: counts for the model's freshness
}

// readOutside reads that record before the transaction that needs it; it is empty if Production did not move.
func (m *Mover) readOutside(ctx context.Context, model string, holders Holders) (out outsideVersion, err error) {
	version := holders[Production]
	if version == "" {
		return out, nil
	}
	row, err := m.Store.CurrentHolder(ctx, store.CurrentHolderParams{ModelID: model, Alias: Production})
	if err != nil && !store.None(err) {
		return out, err
	}
	switch {
	case err == nil && wire.Deref(row.Version) == version:
		return out, nil
	case m.Enforced():
		out.digest, err = m.taggedDigest(ctx, model, version)
	default:
		out.commit, err = m.trainedFrom(ctx, model, Production, version)
	}
	return out, err
}

func externalChange(model, alias string, previous, version *string) change {
	return change{model: model, alias: alias, version: version, previous: previous, actor: external, tenant: event.PlatformTenant, via: ViaExternal}
}

// putBack gives Production back to the admitted version. It plans no move: the history still names the holder, so the
// next pass finds a move that failed or was interrupted. If the tracker no longer has the holder, the alias stays
// unset, and the history records that.
func (m *Mover) putBack(ctx context.Context, move OutsideMove, holders Holders) error {
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	name := m.Registry.TrackerName(move.Model)
	holder := move.Holder
	if holder != "" {
		err := m.Tracker.SetAlias(ctx, name, Production, holder)
		var refused *tracker.Error
		switch {
		case err == nil:
		case errors.As(err, &refused) && refused.Status < 500 && !errors.Is(err, tracker.ErrUnavailable):
			m.Log.WarnContext(ctx, "the admitted version cannot hold Production any more", slog.String("model", move.Model), slog.String("version", holder), slog.Any("err", err))
			holder = ""
		default:
			return Problem(err)
		}
	}
	if holder == "" && move.Version != "" {
		if err := m.Tracker.DeleteAlias(ctx, name, Production); err != nil && !errors.Is(err, tracker.ErrNotFound) {
			return Problem(err)
		}
	}
	delete(holders, Production)
	if holder != "" {
		holders[Production] = holder
	}
	m.Log.WarnContext(ctx, "Production was moved past the gate and put back", slog.String("model", move.Model),
		slog.String("moved_to", move.Version), slog.String("put_back_to", holder))
	return m.Store.InTx(ctx, func(tx store.Tx) error {
		if holder != move.Holder {
			if err := m.record(ctx, tx, externalChange(move.Model, Production, &move.Holder, nil)); err != nil {
				return err
			}
		}
		return tx.Emit(ctx, event.Audit(event.PlatformTenant, move.Mover, "alias.put_back", event.Model(move.Model), event.Denied, map[string]any{
			"alias": Production, "moved_to": wire.OptionalText(move.Version), "put_back_to": wire.OptionalText(holder),
		}))
	})
}
